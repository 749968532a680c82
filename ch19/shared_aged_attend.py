"""One part of a sequence's attention over the ring of its new tokens, in e4m3 or BF16."""

import triton
import triton.language as tl
from shared_e4m3_rows import halves


@triton.jit
def attend_part(q, keys, key_scales, values, value_scales, parts, tops, sums, row, first, last, hole, length, at_part, splits, unit,
                DIM: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr, SCALED: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over slots `first` to `last` but `hole`; rows up to 16 are padding, for the tensor cores."""
    DOT: tl.constexpr = tl.float16 if SCALED else tl.bfloat16  # every e4m3 is a float16
    UPPER: tl.constexpr = 448.0  # times a scale: the largest element of a row, within float16's range
    STEP: tl.constexpr = 2 if SCALED else 1  # which elements are in which half
    OTHER: tl.constexpr = 1 if SCALED else DIM // 2
    member, lane = tl.arange(0, 16), tl.arange(0, DIM // 2) * STEP
    at_query = q + (row * GROUP + member)[:, None] * DIM + lane[None, :]
    query_0 = tl.load(at_query, mask=(member < GROUP)[:, None], other=0.0).to(DOT)
    query_1 = tl.load(at_query + OTHER, mask=(member < GROUP)[:, None], other=0.0).to(DOT)
    top, total = tl.full((16,), -1e30, tl.float32), tl.zeros((16,), tl.float32)
    sums_0, sums_1 = tl.zeros((16, DIM // 2), tl.float32), tl.zeros((16, DIM // 2), tl.float32)
    keys, values = keys + row * length * DIM, values + row * length * DIM
    if SCALED:
        key_scales, value_scales = key_scales + row * length, value_scales + row * length
    for start in range(first, last, TILE):
        at = start + tl.arange(0, TILE)
        inside = (at < last) & (at != hole)
        slot = tl.minimum(at, length - 1)  # what lies outside is read, and has no share
        key_0, key_1 = halves(keys, slot, DIM, SCALED)
        scores = tl.dot(query_1, tl.trans(key_1), tl.dot(query_0, tl.trans(key_0)))
        weight = tl.load(key_scales + slot)[None, :] * unit if SCALED else unit
        scores = tl.where(inside[None, :], scores * weight, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        if SCALED:
            share = share * (tl.load(value_scales + slot) * UPPER)[None, :]
        value_0, value_1 = halves(values, slot, DIM, SCALED)
        sums_0 = tl.dot(share.to(DOT), value_0, sums_0 * fade[:, None])
        sums_1 = tl.dot(share.to(DOT), value_1, sums_1 * fade[:, None])
        top = higher
    if SCALED:
        sums_0, sums_1 = sums_0 / UPPER, sums_1 / UPPER
    at = (row * GROUP + member) * splits + at_part
    tl.store(tops + at, top, mask=member < GROUP)
    tl.store(sums + at, total, mask=member < GROUP)
    to = parts + at[:, None] * DIM + lane[None, :]
    tl.store(to, sums_0, mask=(member < GROUP)[:, None])
    tl.store(to + OTHER, sums_1, mask=(member < GROUP)[:, None])
