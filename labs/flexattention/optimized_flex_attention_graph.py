"""Optimized: one graph launch starts both kernels."""
# predicts: baseline 65.5 us = 40e-6 + 4 * launch + 26 * heads * 0.25 * tokens**2 / (0.3 * 4 * sm_count * warp * sm_clock) on h100
# predicts: optimized 15 us = graph_launch + 2 * 1.2e-6 + 26 * heads * 0.25 * tokens**2 / (0.3 * 4 * sm_count * warp * sm_clock) on h100
# proves: graph_nodes >= 2
# has: kernel flex_attention
#
# TORCH_COMPILE_MODE and BLOCK_SIZE are as in flex_attention; a mode that makes graphs of its own cannot be captured.

import os

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from common.graph import captured

BLOCK_SIZE = int(os.environ.get("BLOCK_SIZE", "128"))
TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2}
compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False, mode=os.environ.get("TORCH_COMPILE_MODE", "default"))


def prepare(q, k, v, bias, bucket, document):
    tokens = q.shape[2]
    first = torch.searchsorted(document, document, out_int32=True)  # of each token's document: documents are in order
    by_distance = torch.empty(len(bias), tokens, dtype=bias.dtype, device=bias.device)

    def seen(_batch, _head, query, key):
        return (query >= key) & (key >= first[query])

    def biased(score, _batch, head, query, key):
        return score + by_distance[head, torch.clamp(query - key, min=0)]

    blocks = create_block_mask(seen, None, None, tokens, tokens, device=q.device, BLOCK_SIZE=BLOCK_SIZE)

    def step():
        torch.index_select(bias, 1, bucket, out=by_distance)  # a lookup a distance, not two a score; the bias changes from step to step
        return compiled(q, k, v, score_mod=biased, block_mask=blocks, kernel_options=TILE)

    return captured(step)
