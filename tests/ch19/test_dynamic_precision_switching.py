"""ch19:dynamic_precision_switching: when the policy picks which weights."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

POLICY = import_file(ROOT / "ch19/shared_precision_policy.py")


def picked(entropies, error=0.03, free=(1.0,)):
    """1 for every step whose next one is narrow."""
    state, found = torch.zeros(2, dtype=torch.int32), []
    for step, entropy in enumerate(entropies):
        values = (torch.tensor(value) for value in (entropy, error, free[min(step, len(free) - 1)]))
        POLICY.Policy(sure=1.0, unsure=2.0, patience=2).update(state, *values)
        found.append(int(state[0]))
    return found


@pytest.mark.parametrize(
    ("entropies", "narrow"),
    [
        ((0.5, 0.5, 0.5), [0, 1, 1]),
        ((0.5, 1.5, 0.5, 0.5), [0, 0, 0, 1]),  # in a row
        ((0.5, 0.5, 1.5, 1.5, 2.5, 1.5), [0, 1, 1, 1, 0, 0]),  # between both thresholds all stays as it is
    ],
)
def test_entropy_switches_with_hysteresis(entropies, narrow):
    assert picked(entropies) == narrow


def test_scarce_memory_narrows_until_it_is_ample():
    assert picked((9.0,) * 5, free=(0.5, 0.04, 0.08, 0.2, 0.08)) == [0, 1, 1, 0, 0]


def test_weights_beyond_the_bound_are_never_read():
    assert picked((0.1,) * 4, error=0.05, free=(0.01,)) == [0, 0, 0, 0]


def test_entropy_is_that_of_the_least_sure_sequence():
    sure, unsure = torch.tensor([50.0, 0.0, 0.0, 0.0]), torch.zeros(4)
    assert POLICY.entropy_of(torch.stack((sure, unsure))).item() == pytest.approx(torch.log(torch.tensor(4.0)).item())
    assert POLICY.entropy_of(sure[None]).item() < 1e-6


def test_narrow_weights_say_how_far_off_they_are(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "ch19")
    product = import_file(ROOT / "ch19/shared_switched_product.py")
    w = torch.randn(70, 96, generator=torch.Generator().manual_seed(0))
    narrow, scales, error = product.narrowed(w)
    off = (narrow.float() * scales[:, None] - w).norm() / w.norm()
    assert error.item() == pytest.approx(off.item(), rel=1e-5)
    assert 0.02 < error.item() < 0.03
