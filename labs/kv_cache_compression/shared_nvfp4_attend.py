"""One part of a decode step's attention over pages in NVFP4: codes and scales lie as in shared_nvfp4.py."""

import triton
import triton.language as tl
from shared_nvfp4 import scaled_quarters
from shared_slots import slot_of


@triton.jit
def attend_nvfp4(q, keys, key_scales, key_whole, values, value_scales, value_whole, table, parts, tops, sums, context, pages, unit,
                 DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over one part of the context; rows up to 16 are padding, for the tensor cores."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, splits = tl.num_programs(1), tl.num_programs(2)
    row, lane = tl.arange(0, 16), tl.arange(0, DIM // 4)
    first_row, some = (sequence * heads + head) * GROUP, (row < GROUP)[:, None]
    at_query = q + (first_row + row)[:, None] * DIM + lane[None, :]
    query_0 = tl.load(at_query, mask=some, other=0.0).to(tl.float16)
    query_1 = tl.load(at_query + DIM // 4, mask=some, other=0.0).to(tl.float16)
    query_2 = tl.load(at_query + DIM // 2, mask=some, other=0.0).to(tl.float16)
    query_3 = tl.load(at_query + DIM // 4 * 3, mask=some, other=0.0).to(tl.float16)
    unit = unit * tl.load(key_whole) * 16384.0
    span = tl.cdiv(tl.cdiv(context, TILE), splits) * TILE
    last = min(part * span + span, context)
    top, total = tl.full((16,), -float("inf"), tl.float32), tl.zeros((16,), tl.float32)
    sums_0, sums_1 = tl.zeros((16, DIM // 4), tl.float32), tl.zeros((16, DIM // 4), tl.float32)
    sums_2, sums_3 = tl.zeros((16, DIM // 4), tl.float32), tl.zeros((16, DIM // 4), tl.float32)
    for start in range(part * span, last, TILE):
        token = start + tl.arange(0, TILE)
        inside = token < last
        slot = slot_of(table, sequence, head, heads, token, pages, PAGE, inside)
        key_0, key_1, key_2, key_3 = scaled_quarters(keys, key_scales, slot, inside, DIM)
        scores = tl.dot(query_1, tl.trans(key_1), tl.dot(query_0, tl.trans(key_0)))
        scores = tl.dot(query_3, tl.trans(key_3), tl.dot(query_2, tl.trans(key_2), scores))
        scores = tl.where(inside[None, :], scores * unit, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        share = share.to(tl.float16)
        value_0, value_1, value_2, value_3 = scaled_quarters(values, value_scales, slot, inside, DIM)
        sums_0, sums_1 = tl.dot(share, value_0, sums_0 * fade[:, None]), tl.dot(share, value_1, sums_1 * fade[:, None])
        sums_2, sums_3 = tl.dot(share, value_2, sums_2 * fade[:, None]), tl.dot(share, value_3, sums_3 * fade[:, None])
        top = higher
    at, whole = (first_row + row) * splits + part, tl.load(value_whole) * 16384.0
    tl.store(tops + at, top, mask=row < GROUP)
    tl.store(sums + at, total, mask=row < GROUP)
    at_part = parts + at[:, None] * DIM + lane[None, :]
    tl.store(at_part, sums_0 * whole, mask=some)
    tl.store(at_part + DIM // 4, sums_1 * whole, mask=some)
    tl.store(at_part + DIM // 2, sums_2 * whole, mask=some)
    tl.store(at_part + DIM // 4 * 3, sums_3 * whole, mask=some)
