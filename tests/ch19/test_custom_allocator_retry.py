"""ch19:custom_allocator_retry: what happens when a batch does not fit."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

answered = import_file(ROOT / "ch19/optimized_custom_allocator_retry.py").answered


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
