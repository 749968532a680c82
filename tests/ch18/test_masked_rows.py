"""Chapter 18: a query that sees nothing gets zeros, never a NaN, from the sides that can be given one.

Their workloads exclude such a query, since libraries answer it each in their own way. A part of a context that has no token is
another matter: check shapes of batch_invariant have some.
"""

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT
from tests.pairs.harness import Harness
from tests.pairs.tree import pairs_of, sides_of

SOME_EMPTY = {"sequences": 3, "shortest": 0, "longest": 150, "heads": 4, "kv_heads": 2, "dim": 16}


@pytest.fixture(scope="module")
def harness():
    with Harness() as harness:
        yield harness


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_a_sequence_of_no_tokens_gets_zeros_of_paged_attention(side, harness):
    """The reference's sum over no tokens is 0, and so must the side's be; for the others, what it is without that sequence."""
    (paged,) = [each for each in sides_of(pairs_of()) if each.file.name == f"{side}_paged_decode.py"]
    harness.check(paged, [SOME_EMPTY])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, once its compiler is imported
@pytest.mark.parametrize("side", ["baseline", pytest.param("optimized", marks=pytest.mark.slow)])
def test_tokens_that_see_nothing_get_zeros_of_flex_attention(side):
    q, k, v = torch.randn(3, 1, 2, 150, 16, generator=torch.Generator().manual_seed(0)).bfloat16()
    document = torch.ones(150, dtype=torch.int32)
    prepare = import_file(PROJECT_ROOT / f"ch18/{side}_flex_attention.py").prepare
    assert not prepare(q, k, v, document, window=0)().any()  # a NaN is true
