"""Chapter 18: what the library's side of flashmla asks of FlashMLA, whose dense kernel is Hopper's alone."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of
from tests.support.teeth import assert_accepts

WORKLOAD = load_workload(PROJECT_ROOT / "ch18/workload_flashmla.py")
PAGE, WIDTH, RANK = 64, 576, 512  # what the dense kernel takes


def as_documented(q, k_cache, block_table, cache_seqlens, head_dim_v, plan, softmax_scale, use_legacy):
    """FlashMLA's decode attention, of one query a sequence."""
    assert use_legacy, "the newer kernels are sparse"
    assert (q.shape[1], head_dim_v, k_cache.shape[1:], q.shape[3]) == (1, RANK, (PAGE, 1, WIDTH), WIDTH)
    assert q.dtype == k_cache.dtype == torch.bfloat16
    assert block_table.dtype == cache_seqlens.dtype == torch.int32
    assert k_cache.isfinite().all(), "what pads a page is multiplied by a share of 0"
    plan.lengths = cache_seqlens.tolist() if plan.lengths is None else plan.lengths
    assert plan.lengths == cache_seqlens.tolist(), "a plan is of the lengths that the first call had"
    averages = []
    for query, pages, length in zip(q[:, 0].float(), block_table, cache_seqlens, strict=True):
        kept = k_cache[pages.long()].flatten(0, 2)[:length].float()
        averages.append((query @ kept.T * softmax_scale).softmax(-1) @ kept[:, :head_dim_v])
    return torch.stack(averages)[:, None].to(q.dtype), None


@pytest.mark.parametrize("shape", [*WORKLOAD.check_at, {**WORKLOAD.check_at[1], "context": PAGE}], ids=str)
def test_the_library_attends_to_the_latents_in_its_pages(monkeypatch, shape):
    package = ModuleType("flash_mla")
    package.get_mla_metadata = lambda: (SimpleNamespace(lengths=None), None)
    package.flash_mla_with_kvcache = as_documented
    monkeypatch.setitem(sys.modules, "flash_mla", package)
    with modules_of(PROJECT_ROOT / "ch18", monkeypatch):
        assert_accepts(WORKLOAD, "ch18/library_flashmla.py", shape)
