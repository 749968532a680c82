"""A cache whose tokens lose precision as they age: the newest in e4m3 or BF16, in a ring; older ones as integers of 4 bits.

Both formats have a scale for each token and head. A 16-bit word has four codes: word i of a row has element i + j * dim / 4, plus 8, in
bits 4j to 4j + 3.
"""

import torch
import triton
import triton.language as tl


def recent_of(x):
    """`x`, [..., dim], in e4m3, and the float32 scales that map each row's largest element to 448."""
    scale = x.abs().amax(-1).float().clamp(min=1e-12) / 448
    return (x / scale.unsqueeze(-1)).to(torch.float8_e4m3fn), scale


def old_of(x):
    """`x`, [..., dim], as words [..., dim / 4] in int16, and the float32 scales that map each row's largest element to 7."""
    scale = x.abs().amax(-1).float().clamp(min=1e-12) / 7
    first, second, third, fourth = ((x / scale.unsqueeze(-1)).round().int() + 8).chunk(4, dim=-1)
    return (first | second << 4 | third << 8 | fourth << 12).to(torch.int16), scale


@triton.jit
def renew(x, recent, recent_scales, old, old_scales, row, context, ring, DIM: tl.constexpr, FP8: tl.constexpr, AGES: tl.constexpr):
    """The token that leaves the ring is rounded to 4 bits; the newest, `context - 1`, enters the ring."""
    if AGES:
        slot, token = row * ring + context % ring, row * (context - ring + 1) + context - ring
        quarter, lane = tl.arange(0, 4)[:, None], tl.arange(0, DIM // 4)
        value = tl.load(recent + slot * DIM + quarter * (DIM // 4) + lane[None, :]).to(tl.float32) * tl.load(recent_scales + slot)
        scale = tl.maximum(tl.max(tl.abs(value)), 1e-12) / 7
        words = tl.sum(tl.floor(value / scale + 8.5).to(tl.int32) << 4 * quarter, 0)  # no two have a bit in common
        tl.store(old + token * (DIM // 4) + lane, words.to(tl.int16))
        tl.store(old_scales + token, scale)
    slot = row * ring + (context - 1) % ring
    lane = tl.arange(0, DIM)
    value = tl.load(x + row * DIM + lane).to(tl.float32)
    if FP8:
        scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / 448
        tl.store(recent_scales + slot, scale)
        value = value / scale
    tl.store(recent + slot * DIM + lane, value.to(recent.dtype.element_ty))


@triton.jit
def append(k, v, keys, key_scales, old_keys, old_key_scales, values, value_scales, old_values, old_value_scales, context, ring,
           DIM: tl.constexpr, FP8: tl.constexpr, AGES: tl.constexpr):  # fmt: skip
    """Row program_id(0) is one key head of one sequence."""
    row = tl.program_id(0).to(tl.int64)
    renew(k, keys, key_scales, old_keys, old_key_scales, row, context, ring, DIM, FP8, AGES)
    renew(v, values, value_scales, old_values, old_value_scales, row, context, ring, DIM, FP8, AGES)
