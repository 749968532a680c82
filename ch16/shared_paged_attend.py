"""One part of a sequence's attention over paged keys and values, in bf16 or e4m3."""

import triton
import triton.language as tl
from shared_paged_cache import LARGEST


@triton.jit
def attend(q, keys, values, k_scales, v_scales, table, parts, tops, sums, context, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr,
           PAGE: tl.constexpr, TILE: tl.constexpr, FP8: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over one part of the context; rows up to 16 are padding, for the tensor cores."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, splits = tl.num_programs(1), tl.num_programs(2)
    DOT: tl.constexpr = tl.float16 if FP8 else tl.bfloat16  # every e4m3 value is a float16
    row, lane = tl.arange(0, 16), tl.arange(0, DIM)
    first_row = (sequence * heads + head) * GROUP
    query = tl.load(q + (first_row + row)[:, None] * DIM + lane[None, :], mask=(row < GROUP)[:, None], other=0.0).to(DOT)
    span = tl.cdiv(tl.cdiv(context, TILE), splits) * TILE
    last = min(part * span + span, context)
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    sums_of_values = tl.zeros((16, DIM), tl.float32)
    for start in range(part * span, last, TILE):
        token = start + tl.arange(0, TILE)
        inside = token < last
        page = tl.load(table + sequence * pages + token // PAGE, mask=inside, other=0).to(tl.int64)
        slot = (page * heads + head) * PAGE + token % PAGE
        key = tl.load(keys + slot[None, :] * DIM + lane[:, None]).to(DOT)
        scores = tl.dot(query, key) * unit
        if FP8:
            scores = scores * tl.load(k_scales + slot)[None, :]
        scores = tl.where(inside[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        if FP8:
            share = share * (tl.load(v_scales + slot) * LARGEST)[None, :]  # the largest element: within float16's range
        value = tl.load(values + slot[:, None] * DIM + lane[None, :]).to(DOT)
        sums_of_values = sums_of_values * fade[:, None] + tl.dot(share.to(DOT), value)
        top = higher
    if FP8:
        sums_of_values = sums_of_values / LARGEST
    at = (first_row + row) * splits + part
    tl.store(tops + at, top, mask=row < GROUP)
    tl.store(sums + at, total, mask=row < GROUP)
    tl.store(parts + at[:, None] * DIM + lane[None, :], sums_of_values, mask=(row < GROUP)[:, None])
