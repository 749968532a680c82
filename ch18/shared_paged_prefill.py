"""Attention over pages for steps that decode and prefill: a chunk's queries share the tiles of keys that a program loads."""

import torch
import triton
import triton.language as tl
from shared_mixed_steps import chunks_of
from shared_paged_decode import decoder, span_of

TILE = 64  # tokens that a program multiplies at once
ROWS = 64  # queries of a program: those of the heads that share a key head, for as many tokens as fit


@triton.jit
def attend_chunk(q, keys, values, table, y, first, count, unit, DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr,
                 TOKENS: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head for TOKENS of the chunk's `count` tokens, which lie behind `first` earlier ones."""
    head, heads = tl.program_id(1), tl.num_programs(1)
    row, lane = tl.arange(0, TOKENS * GROUP), tl.arange(0, DIM)
    token = tl.program_id(0) * TOKENS + row // GROUP
    at = ((token * heads + head) * GROUP + row % GROUP)[:, None] * DIM + lane[None, :]
    query = tl.load(q + at, mask=(token < count)[:, None], other=0.0)
    end = first + tl.minimum(count, (tl.program_id(0) + 1) * TOKENS)
    top = tl.full((TOKENS * GROUP,), -float("inf"), tl.float32)
    total = tl.zeros((TOKENS * GROUP,), tl.float32)
    average = tl.zeros((TOKENS * GROUP, DIM), tl.float32)
    for start in range(0, end, TILE):
        other = start + tl.arange(0, TILE)
        page = tl.load(table + other // PAGE, mask=other < end, other=0).to(tl.int64)
        slot = (page * PAGE + other % PAGE) * heads + head
        key = tl.load(keys + slot[None, :] * DIM + lane[:, None])
        seen = other[None, :] <= first + token[:, None]
        scores = tl.where(seen, tl.dot(query, key) * unit, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))  # token 0 is seen by all, so it is finite
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        value = tl.load(values + slot[:, None] * DIM + lane[None, :])
        total = total * fade + tl.sum(share, 1)
        average = average * fade[:, None] + tl.dot(share.to(value.dtype), value)
        top = higher
    tl.store(y + at, (average / total[:, None]).to(y.dtype.element_ty), mask=(token < count)[:, None])


def steps_of(prompt, queries, keys, values, table, lengths, context, chunk):
    """The prompt's attention [context, heads, dim], and for each step a function that writes its chunk, and one that attends to decode."""
    (_, heads, dim), (_, page, kv_heads, _), attended = prompt.shape, keys.shape, torch.empty_like(prompt)
    span = span_of(table.shape[1] * page, queries.shape[1] * kv_heads)
    sizes = {"DIM": dim, "GROUP": heads // kv_heads, "PAGE": page, "TOKENS": max(1, ROWS * kv_heads // heads), "TILE": TILE}

    def prefill(first, count):
        grid = (triton.cdiv(count, sizes["TOKENS"]), kv_heads)
        q, y, unit = prompt[first:], attended[first:], dim**-0.5 * 1.4426950408889634  # log2(e): exponentials are powers of two
        return lambda: attend_chunk[grid](q, keys, values, table[-1], y, first, count, unit, **sizes, num_warps=4, num_stages=3)

    prefills = [prefill(*part) for part in chunks_of(context, chunk)]
    decodes = [decoder(q, keys, values, table[:-1], lengths + i, span) for i, q in enumerate(queries)]
    return attended, list(zip(prefills, decodes, strict=True))
