"""ch19:custom_allocator_retry: what happens when a batch does not fit."""

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

answered = import_file(ROOT / "ch19/optimized_custom_allocator_retry.py").answered


@pytest.fixture
def largest(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "ch19")
    return import_file(ROOT / "ch19/baseline_custom_allocator_retry.py").largest


class Peak(TorchDispatchMode):
    """The most bytes of new tensors that were alive at once."""

    def __init__(self):
        super().__init__()
        self._alive, self.bytes = weakref.WeakSet(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self._alive.add(made.untyped_storage())
        self.bytes = max(self.bytes, sum(storage.nbytes() for storage in self._alive))
        return made


def scorer(most):
    """Sums rows of at most `most` documents, and says of which sizes it was asked."""
    sizes = []

    def compute(x):
        sizes.append(len(x))
        if len(x) > most:
            raise torch.OutOfMemoryError("found no memory")
        return x.sum(dim=1)

    return compute, sizes


@pytest.mark.parametrize(("documents", "most", "fitted"), [(21, 5, 3), (21, 21, 21), (8, 1, 1), (7, 4, 4)])
def test_every_document_is_answered_in_batches_that_fit(documents, most, fitted):
    x, y = torch.arange(2.0 * documents).view(documents, 2), torch.full((documents,), torch.nan)
    compute, sizes = scorer(most)
    assert answered(x, y, documents, compute) == fitted
    assert torch.equal(y, x.sum(dim=1))
    assert sum(size for size in sizes if size <= most) == documents


def test_a_document_that_does_not_fit_alone_is_an_error():
    compute, _ = scorer(0)
    with pytest.raises(torch.OutOfMemoryError):
        answered(torch.zeros(3, 2), torch.zeros(3), 3, compute)


@pytest.mark.parametrize(("tokens", "width"), [(64, 16), (33, 33), (16, 64)])
def test_the_batch_of_the_arithmetic_fits_and_twice_as_many_documents_do_not(tokens, width, largest):
    pooled = import_file(ROOT / "ch19/shared_pooled.py").pooled
    peaks = []
    for documents in (largest(3e6, tokens, width), 2 * largest(3e6, tokens, width)):
        x = torch.randn(documents, tokens, width)
        with Peak() as peak:
            pooled(x)
        peaks.append(peak.bytes - x.nbytes)
    assert peaks[0] < 3e6 < peaks[1]


def test_a_document_that_may_not_fit_is_tried_alone(largest):
    assert largest(10, 64, 16) == 1
