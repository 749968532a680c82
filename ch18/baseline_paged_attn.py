"""Baseline: pages are gathered, and every operator is a kernel."""
# allows: alloc

import torch
from shared_mixed_steps import EPS, chunks_of
from torch.nn.functional import linear, rms_norm

from common.serving.step import masked_attention


def prepare(prompt, queries, keys, values, table, lengths, norm, weight, context, chunk, page):
    at = torch.arange(table.shape[1] * page, device=prompt.device)
    rows, own, scale = table[:-1], table[-1], prompt.shape[2] ** -0.5

    def dense(pages):
        return (x[pages].flatten(-4, -3) for x in (keys, values))  # [sequences, tokens, kv heads, dim]

    def prefilled(first, count):
        end = first + count
        pages = own[None, : -(-end // page)]
        seen = at[: pages.shape[1] * page] <= at[first:end, None]
        return masked_attention(prompt[None, first:end], *dense(pages), seen[None], scale)[0]

    def decoded(i):
        seen = at < lengths[:, None] + i
        x = masked_attention(queries[i, :, None], *dense(rows), seen[:, None], scale)
        return linear(rms_norm(x.flatten(1), norm.shape, norm, EPS), weight)

    def step():
        parts = [(prefilled(*part), decoded(i)) for i, part in enumerate(chunks_of(context, chunk))]
        return torch.cat([attended for attended, _ in parts]), torch.stack([y for _, y in parts])

    return step
