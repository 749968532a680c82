"""A decode step over paged keys and values in bf16 or NVFP4: append a token per sequence, attend over all of them, combine the parts.

NVFP4 is e2m1 in blocks of 16 with a scale in e4m3 each, and one float32 scale for the whole tensor. Four codes lie in a word of 16 bits.
"""

import torch
import triton
import triton.language as tl
from shared_nvfp4 import store_nvfp4
from shared_nvfp4_attend import attend_nvfp4
from shared_slots import slot_of

PAGE = 16  # tokens
TILE = 64  # tokens that a program has in flight at once


@triton.jit
def append(x, cache, scales, whole, table, context, pages, DIM: tl.constexpr, PAGE: tl.constexpr, FP4: tl.constexpr):
    """The newest token, `context - 1`, of sequence program_id(0) and head program_id(1)."""
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    slot = slot_of(table, sequence, head, heads, context - 1, pages, PAGE, True)
    row = x + (sequence * heads + head) * DIM
    if FP4:
        store_nvfp4(row, cache + slot * (DIM // 4), scales + slot * (DIM // 16), tl.load(whole), DIM)
    else:
        lane = tl.arange(0, DIM)
        tl.store(cache + slot * DIM + lane, tl.load(row + lane))


@triton.jit
def halves(cache, slot, inside, DIM: tl.constexpr):
    """The first and the second half of rows `slot`, [tokens, DIM / 2] each."""
    at = cache + slot[:, None] * DIM + tl.arange(0, DIM // 2)[None, :]
    return tl.load(at, mask=inside[:, None], other=0.0), tl.load(at + DIM // 2, mask=inside[:, None], other=0.0)


@triton.jit
def attend(q, keys, values, table, parts, tops, sums, context, pages, unit,
           DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over one part of the context; rows up to 16 are padding, for the tensor cores."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, splits = tl.num_programs(1), tl.num_programs(2)
    row, lane = tl.arange(0, 16), tl.arange(0, DIM // 2)
    first_row = (sequence * heads + head) * GROUP
    at_query = q + (first_row + row)[:, None] * DIM + lane[None, :]
    query_0 = tl.load(at_query, mask=(row < GROUP)[:, None], other=0.0)
    query_1 = tl.load(at_query + DIM // 2, mask=(row < GROUP)[:, None], other=0.0)
    span = tl.cdiv(tl.cdiv(context, TILE), splits) * TILE
    last = min(part * span + span, context)
    top, total = tl.full((16,), -float("inf"), tl.float32), tl.zeros((16,), tl.float32)
    sums_0, sums_1 = tl.zeros((16, DIM // 2), tl.float32), tl.zeros((16, DIM // 2), tl.float32)
    for start in range(part * span, last, TILE):
        token = start + tl.arange(0, TILE)
        inside = token < last
        slot = slot_of(table, sequence, head, heads, token, pages, PAGE, inside)
        key_0, key_1 = halves(keys, slot, inside, DIM)
        scores = (tl.dot(query_0, tl.trans(key_0)) + tl.dot(query_1, tl.trans(key_1))) * unit
        scores = tl.where(inside[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        value_0, value_1 = halves(values, slot, inside, DIM)
        sums_0 = sums_0 * fade[:, None] + tl.dot(share.to(tl.bfloat16), value_0)
        sums_1 = sums_1 * fade[:, None] + tl.dot(share.to(tl.bfloat16), value_1)
        top = higher
    at = (first_row + row) * splits + part
    tl.store(tops + at, top, mask=row < GROUP)
    tl.store(sums + at, total, mask=row < GROUP)
    at_part = parts + at[:, None] * DIM + lane[None, :]
    tl.store(at_part, sums_0, mask=(row < GROUP)[:, None])
    tl.store(at_part + DIM // 2, sums_1, mask=(row < GROUP)[:, None])


@triton.jit
def combine(parts, tops, sums, y, DIM: tl.constexpr, SPLITS: tl.constexpr):
    """A head's answer from those over the parts of its context."""
    head, part, lane = tl.program_id(0), tl.arange(0, SPLITS), tl.arange(0, DIM)
    at = head * SPLITS + part
    top = tl.load(tops + at)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(sums + at), 0)
    value = tl.load(parts + at[:, None] * DIM + lane[None, :])
    tl.store(y + head * DIM + lane, (tl.sum(value * weight[:, None], 0) / total).to(y.dtype.element_ty))


def decoder(q, k, v, keys, values, table, context):
    """A step. `keys` and `values` are (pages, scales, the whole tensor's scale), the last two None for bf16; they belong to the side."""
    (sequences, heads, dim), kv_heads, pages = q.shape, k.shape[1], table.shape[1]
    in_fp4 = keys[1] is not None
    tile = 2 * TILE if in_fp4 else TILE  # fewer bytes a token
    splits = min(16, triton.next_power_of_2(triton.cdiv(context, tile)))
    while (splits - 1) * triton.cdiv(triton.cdiv(context, tile), splits) * tile >= context and splits > 1:
        splits //= 2  # no part may be empty
    parts = torch.empty(sequences, heads, splits, dim, device=q.device)
    tops, sums = torch.empty(2, sequences, heads, splits, device=q.device)
    y = torch.empty_like(q)
    sizes = {"DIM": dim, "PAGE": PAGE}
    kernel, caches = (attend_nvfp4, (*keys, *values)) if in_fp4 else (attend, (keys[0], values[0]))
    unit = dim**-0.5 * 1.4426950408889634  # log2(e): shares are powers of two
    to_attend = {"GROUP": heads // kv_heads, "TILE": tile, "num_warps": 4, "num_stages": 3}

    def step():
        for new, cache in ((k, keys), (v, values)):
            append[sequences, kv_heads](new, *cache, table, context, pages, FP4=in_fp4, **sizes, num_warps=1)
        kernel[sequences, kv_heads, splits](q, *caches, table, parts, tops, sums, context, pages, unit, **sizes, **to_attend)
        combine[sequences * heads,](parts, tops, sums, y, DIM=dim, SPLITS=splits, num_warps=4)
        return y

    return step
