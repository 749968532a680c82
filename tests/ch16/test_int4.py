"""Weights of 4 bits: what rounding and packing promise, and what GPTQ gains."""

import pytest
import torch

from tests.support.chapters import modules_of
from tests.support.teeth import ROOT


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    """The chapter's shared modules can be imported, and are forgotten afterwards."""
    with modules_of(ROOT / "ch16", monkeypatch):
        yield


def weights(rows, k, seed=0):
    return torch.randn(rows, k, generator=torch.Generator().manual_seed(seed))


def test_groups_are_a_rearrangement():
    from shared_int4 import grouped, ungrouped

    w = weights(3, 768)
    assert torch.equal(ungrouped(grouped(w, 128)), w)


def test_a_rounded_weight_is_off_by_half_a_step_at_most():
    from shared_int4 import grouped, nearest, restored

    w = weights(5, 512)
    q = nearest(w, 64)
    assert q.codes.max() <= 15
    off = (grouped(restored(q), 64) - grouped(w, 64)).abs()
    assert (off <= 1.01 * q.scale).all()
    assert off.mean() < 0.27 * q.scale.mean()  # a quarter of a step in the mean


def test_zeros_stay_zeros():
    from shared_int4 import nearest, restored

    assert not restored(nearest(torch.zeros(2, 128))).any()


def test_gptq_loses_less_of_correlated_products_and_no_more_of_others():
    from shared_gptq import gptq
    from shared_int4 import nearest, restored

    w, mixing = weights(32, 256), weights(256, 256, 1)

    def lost(x, other):
        return ((x @ (restored(other) - w).T).norm() / (x @ w.T).norm()).item()

    independent = weights(2048, 256, 2)
    correlated = (independent * (torch.arange(256) + 1.0).rsqrt()) @ mixing
    assert lost(correlated, gptq(w, correlated)) < 0.8 * lost(correlated, nearest(w))
    assert lost(independent, gptq(w, independent)) < 1.02 * lost(independent, nearest(w))
