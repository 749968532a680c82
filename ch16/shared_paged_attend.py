"""One part of a sequence's attention over paged keys and values, in bf16 or e4m3."""

import triton
import triton.language as tl
from shared_e4m3_rows import halves
from shared_paged_cache import LARGEST


@triton.jit
def attend(q, keys, values, k_scales, v_scales, table, parts, tops, sums, context, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr,
           PAGE: tl.constexpr, TILE: tl.constexpr, FP8: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over one part of the context; rows up to 16 are padding, for the tensor cores."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, splits = tl.num_programs(1), tl.num_programs(2)
    DOT: tl.constexpr = tl.float16 if FP8 else tl.bfloat16  # every e4m3 value is a float16
    STEP: tl.constexpr = 2 if FP8 else 1  # which elements are in which half
    OTHER: tl.constexpr = 1 if FP8 else DIM // 2
    row, lane = tl.arange(0, 16), tl.arange(0, DIM // 2) * STEP
    first_row, some = (sequence * heads + head) * GROUP, (row < GROUP)[:, None]
    at_query = q + (first_row + row)[:, None] * DIM + lane[None, :]
    query_0 = tl.load(at_query, mask=some, other=0.0).to(DOT)
    query_1 = tl.load(at_query + OTHER, mask=some, other=0.0).to(DOT)
    span = tl.cdiv(tl.cdiv(context, TILE), splits) * TILE
    last = min(part * span + span, context)
    top, total = tl.full((16,), -float("inf"), tl.float32), tl.zeros((16,), tl.float32)
    sums_0, sums_1 = tl.zeros((16, DIM // 2), tl.float32), tl.zeros((16, DIM // 2), tl.float32)
    for start in range(part * span, last, TILE):
        token = start + tl.arange(0, TILE)
        inside = token < last
        page = tl.load(table + sequence * pages + token // PAGE, mask=inside, other=0).to(tl.int64)
        slot = (page * heads + head) * PAGE + token % PAGE
        key_0, key_1 = halves(keys, slot, DIM, FP8)
        scores = tl.dot(query_1, tl.trans(key_1), tl.dot(query_0, tl.trans(key_0)))
        weight = tl.load(k_scales + slot)[None, :] * unit if FP8 else unit
        scores = tl.where(inside[None, :], scores * weight, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        if FP8:
            share = share * (tl.load(v_scales + slot) * LARGEST)[None, :]  # the largest element: within float16's range
        value_0, value_1 = halves(values, slot, DIM, FP8)
        sums_0 = tl.dot(share.to(DOT), value_0, sums_0 * fade[:, None])
        sums_1 = tl.dot(share.to(DOT), value_1, sums_1 * fade[:, None])
        top = higher
    if FP8:
        sums_0, sums_1 = sums_0 / LARGEST, sums_1 / LARGEST
    at = (first_row + row) * splits + part
    tl.store(tops + at, top, mask=row < GROUP)
    tl.store(sums + at, total, mask=row < GROUP)
    to = parts + at[:, None] * DIM + lane[None, :]
    tl.store(to, sums_0, mask=some)
    tl.store(to + OTHER, sums_1, mask=some)
