"""The parts of attention over a cache of two formats: those of the ring and those of old tokens, and how parts become an answer."""

import triton
import triton.language as tl
from shared_aged_attend import attend_part
from shared_aged_int4 import attend_old


@triton.jit
def attend(q, keys, key_scales, old_keys, old_key_scales, values, value_scales, old_values, old_value_scales, parts, tops, sums,
           context, ring, span, unit, DIM: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr, FP8: tl.constexpr,
           AGES: tl.constexpr):  # fmt: skip
    """Part program_id(1) of row program_id(0): those of the ring come first."""
    row, part, splits, old = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1), context - ring + 1
    first = part - tl.cdiv(ring, span)
    if first < 0:
        attend_part(q, keys, key_scales, values, value_scales, parts, tops, sums, row, part * span, min(part * span + span, ring),
                    context % ring, ring, part, splits, unit, DIM, GROUP, TILE, FP8)  # fmt: skip
    if AGES and first >= 0:  # twice the tokens are as many bytes
        attend_old(q, old_keys, old_key_scales, old_values, old_value_scales, parts, tops, sums, row, first * span,
                   min(first * span + span, old), old, part, splits, unit, DIM, GROUP, 2 * TILE)  # fmt: skip


@triton.jit
def combine(parts, tops, sums, y, splits, DIM: tl.constexpr, SPLITS: tl.constexpr):
    """A head's answer from those over the parts of its context."""
    head, part, lane = tl.program_id(0), tl.arange(0, SPLITS), tl.arange(0, DIM)
    at, inside = head * splits + part, part < splits
    top = tl.load(tops + at, mask=inside, other=-1e30)
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(sums + at, mask=inside, other=0.0), 0)
    value = tl.load(parts + at[:, None] * DIM + lane[None, :], mask=inside[:, None], other=0.0)
    tl.store(y + head * DIM + lane, (tl.sum(value * weight[:, None], 0) / total).to(y.dtype.element_ty))
