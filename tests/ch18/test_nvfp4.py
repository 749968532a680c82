"""NVFP4 rounds to its nearest values."""

import pytest
import torch

from common.python.child.sides.compare import compare
from common.python.child.sides.loader import load_workload
from common.python.project import PROJECT_ROOT
from tests.pairs.wrong_answers import cases_of
from tests.support.chapters import modules_of


@pytest.fixture
def chapter(monkeypatch):
    """The chapter's modules can be imported, and are forgotten afterwards."""
    with modules_of(PROJECT_ROOT / "ch18", monkeypatch):
        yield


def test_nvfp4_takes_its_own_values_as_they_are_and_others_to_the_nearest(chapter):
    from shared_nvfp4 import quantized, restored

    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0, 6.0])
    exact = torch.stack((values, values.flip(0) * 448))
    assert torch.equal(restored(quantized(exact)), exact)
    w = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    off = (restored(quantized(w)) - w).unflatten(1, (-1, 16))
    most = w.unflatten(1, (-1, 16)).abs().amax(-1, keepdim=True)
    assert bool((off.abs() <= most / 6 * 1.08).all())  # half of the widest gap, 4 to 6, and what the scale's own rounding adds
    assert not restored(quantized(torch.zeros(2, 32))).any()


def as_it_is(q):
    return q


def of_row_before(q):
    return q._replace(packed=q.packed.roll(1, 0))


def of_neighbours(q):
    return q._replace(scales=q.scales.view(torch.uint8).roll(1, 1).view(q.scales.dtype))


MISTAKES = {
    "the row before": (of_row_before, as_it_is),
    "two elements before": (lambda q: q._replace(packed=q.packed.roll(1, 1)), as_it_is),
    "the halves of a byte swapped": (lambda q: q._replace(packed=q.packed >> 4 | q.packed << 4), as_it_is),
    "the row before in the second product": (as_it_is, of_row_before),
    "no second product": (as_it_is, lambda q: q._replace(packed=torch.zeros_like(q.packed))),
    "the neighbours' scales": (of_neighbours, of_neighbours),
}


@pytest.mark.parametrize("rounds_token", [False, True])
def test_mistakes_are_refused(rounds_token, chapter, tmp_path):
    """At each side's own tolerance: Blackwell's rounds what it multiplies by the weights, too."""
    from shared_nvfp4 import mlp, quantized, restored

    variant = "_blackwell" if rounds_token else ""
    workload = load_workload(PROJECT_ROOT / f"ch18/workload_nvfp4_inference{variant}.py")
    (case,) = cases_of(workload, [workload.check_at[1]], tmp_path)
    x, norm, gate_up, down = (case.values[name].float() for name in ("x", "norm", "gate_up", "down"))

    def is_refused(change_gate_up, change_down, change_token=as_it_is):
        def linear(w, change):
            weights = restored(change(quantized(w))).T
            return lambda h: (restored(change_token(quantized(h))) if rounds_token else h) @ weights

        found = mlp(x, norm, linear(gate_up, change_gate_up), linear(down, change_down)).to(torch.bfloat16)
        return bool(compare("", found, case.right[0], workload.tolerance("optimized"))[1])

    assert not is_refused(as_it_is, as_it_is)
    assert [name for name, changes in MISTAKES.items() if not is_refused(*changes)] == []
    if rounds_token:
        assert is_refused(as_it_is, as_it_is, of_neighbours)
        assert is_refused(as_it_is, as_it_is, lambda q: q._replace(packed=q.packed.roll(1, 1)))
