"""NVFP4 rounds to its nearest values."""

import pytest
import torch

from common.python.project import PROJECT_ROOT
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
