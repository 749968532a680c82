"""One part of a sequence's attention over its old tokens, in integers of 4 bits, four to a 16-bit word."""

import triton
import triton.language as tl
from shared_aged_codes import quarters

UPPER = tl.constexpr(7.0)  # times a scale: the largest element of a row, within float16's range


@triton.jit
def attend_old(q, keys, key_scales, values, value_scales, parts, tops, sums, row, first, last, length, at_part, splits, unit,
               DIM: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """The GROUP query heads of a key head over old tokens `first` to `last`; rows up to 16 are padding, for the tensor cores."""
    member, lane = tl.arange(0, 16), tl.arange(0, DIM // 4)
    at_query, some = q + (row * GROUP + member)[:, None] * DIM + lane[None, :], (member < GROUP)[:, None]
    query_0 = tl.load(at_query, mask=some, other=0.0).to(tl.float16)
    query_1 = tl.load(at_query + DIM // 4, mask=some, other=0.0).to(tl.float16)
    query_2 = tl.load(at_query + DIM // 2, mask=some, other=0.0).to(tl.float16)
    query_3 = tl.load(at_query + DIM // 4 * 3, mask=some, other=0.0).to(tl.float16)
    top, total = tl.full((16,), -1e30, tl.float32), tl.zeros((16,), tl.float32)
    sums_0, sums_1 = tl.zeros((16, DIM // 4), tl.float32), tl.zeros((16, DIM // 4), tl.float32)
    sums_2, sums_3 = tl.zeros((16, DIM // 4), tl.float32), tl.zeros((16, DIM // 4), tl.float32)
    keys, values = keys + row * length * (DIM // 4), values + row * length * (DIM // 4)
    key_scales, value_scales = key_scales + row * length, value_scales + row * length
    for start in range(first, last, TILE):
        at = start + tl.arange(0, TILE)
        inside, slot = at < last, tl.minimum(at, length - 1)
        words = slot[:, None] * (DIM // 4) + lane[None, :]
        key_0, key_1, key_2, key_3 = quarters(tl.trans(tl.load(keys + words)))
        scores = tl.dot(query_1, key_1, tl.dot(query_0, key_0))
        scores = tl.dot(query_3, key_3, tl.dot(query_2, key_2, scores))
        scores = scores * (tl.load(key_scales + slot) * unit)[None, :]
        scores = tl.where(inside[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        total = total * fade + tl.sum(share, 1)
        share = (share * (tl.load(value_scales + slot) * UPPER)[None, :]).to(tl.float16)
        value_0, value_1, value_2, value_3 = quarters(tl.load(values + words))
        sums_0, sums_1 = tl.dot(share, value_0, sums_0 * fade[:, None]), tl.dot(share, value_1, sums_1 * fade[:, None])
        sums_2, sums_3 = tl.dot(share, value_2, sums_2 * fade[:, None]), tl.dot(share, value_3, sums_3 * fade[:, None])
        top = higher
    at = (row * GROUP + member) * splits + at_part
    tl.store(tops + at, top, mask=member < GROUP)
    tl.store(sums + at, total, mask=member < GROUP)
    to = parts + at[:, None] * DIM + lane[None, :]
    tl.store(to, sums_0 / UPPER, mask=some)
    tl.store(to + DIM // 4, sums_1 / UPPER, mask=some)
    tl.store(to + DIM // 2, sums_2 / UPPER, mask=some)
    tl.store(to + DIM // 4 * 3, sums_3 / UPPER, mask=some)
