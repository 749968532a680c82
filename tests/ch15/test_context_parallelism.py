"""ch15:context_parallelism: merging blocks by their log-sums is exact, whatever the scores are, and chunks are dealt evenly."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch15"
ring = import_file(CHAPTER / "shared_ring.py")
side = import_file(CHAPTER / "optimized_context_parallelism.py")


@pytest.mark.parametrize("shift", [0.0, 60.0, -60.0])
def test_merged_blocks_are_the_softmax_over_both(shift):
    """In float64; the second block's scores are far above or below the first's."""
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(5, 2, keys, generator=generator, dtype=torch.float64) for keys in (7, 3))
    second = second + shift
    values = torch.randn(10, 4, generator=generator)
    out, sums = (first.softmax(-1) @ values[:7].double()).float(), first.logsumexp(-1).float()
    side.merge(out, sums, (second.softmax(-1) @ values[7:].double()).float(), second.logsumexp(-1).float())
    both = torch.cat((first, second), dim=-1)
    torch.testing.assert_close(out.double(), both.softmax(-1) @ values.double(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(sums.double(), both.logsumexp(-1), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_every_chunk_is_on_one_rank_and_all_have_as_much_to_do(ranks):
    held = [ring.chunks_of(rank, ranks) for rank in range(ranks)]
    assert sorted(sum(held, ())) == list(range(2 * ranks))
    assert len({sum(chunks) for chunks in held}) == 1


def test_log_sums_of_a_block():
    q, k, v = (torch.randn(6, 2, 64, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    out, sums = ring.attend(q, k, v, causal=True)
    scores = torch.einsum("qhd,khd->qhk", q, k) / 8
    scores = scores.masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril()[:, None], -torch.inf)
    torch.testing.assert_close(sums, scores.logsumexp(-1))
    torch.testing.assert_close(out, torch.einsum("qhk,khd->qhd", scores.softmax(-1), v))
