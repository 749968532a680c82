"""Baseline: pages are gathered into one dense tensor a step, padded to the longest sequence, for PyTorch's fused attention."""
# allows: alloc

import torch

from common.serving.step import masked_attention


def prepare(q, keys, values, table, lengths):
    seen = torch.arange(table.shape[1] * keys.shape[1], device=q.device) < lengths[:, None]

    def step():
        dense = (x[table].flatten(1, 2) for x in (keys, values))  # [sequences, tokens, kv heads, dim]
        return masked_attention(q[:, None], *dense, seen[:, None], q.shape[2] ** -0.5)[:, 0]

    return step
