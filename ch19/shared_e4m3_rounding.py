"""BF16 values rounded to MXFP8 and back by integer arithmetic, bit for bit: e4m3, with a power of two as scale for each 32 of a row."""

import torch
import triton
import triton.language as tl

VALUES = 8192  # of a program
VALUES_IN_THE_INTERPRETER = 1 << 20  # which takes as long for a program, whatever its tile


@triton.jit
def e4m3_of(x):
    """The nearest value of e4m3, ties to even, in float32; beyond 448 it saturates."""
    size = tl.minimum(tl.abs(x), 448.0)
    bits = size.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) & -0x100000).to(tl.float32, bitcast=True)  # 3 bits of mantissa are left
    small = (size + 24576.0) - 24576.0  # below 2**-6 values are multiples of 2**-9: of a float32's last bit at 1.5 * 2**14
    rounded = tl.where(size < 0.015625, small, normal)
    return tl.where(x < 0, -rounded, rounded)


@triton.jit
def round_by_32(x, y, count, UP: tl.constexpr, VALUES: tl.constexpr):
    """y = e4m3(x / scale) * scale for each 32 values. Blocks below 2**-118 become zeros.

    The scale is 2**(exponent of the block's largest - 8): OCP MX 1.0. With UP it is doubled where the largest is above 448 scales.
    """
    block = tl.program_id(0).to(tl.int64) * (VALUES // 32) + tl.arange(0, VALUES // 32)
    at = block[:, None] * 32 + tl.arange(0, 32)[None, :]
    value = tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)
    bits = tl.max(tl.abs(value), 1).to(tl.int32, bitcast=True)
    if UP:
        bits += 0x1FFFFF  # carries into the exponent where the mantissa is above 1.75, that of 448
    power = tl.maximum((bits >> 23) - 8, 1)  # a float32's exponent bits are E8M0's byte
    unit = (power << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - power) << 23).to(tl.float32, bitcast=True)
    tl.store(y + at, (e4m3_of(value * inverse[:, None]) * unit[:, None]).to(y.dtype.element_ty), mask=at < count)


def rounded(x, up):
    """`x`, contiguous BF16, in MXFP8 and back; `up` says where scales are rounded to."""
    y = torch.empty_like(x)
    at_once = VALUES if isinstance(round_by_32, triton.JITFunction) else VALUES_IN_THE_INTERPRETER
    round_by_32[triton.cdiv(x.numel(), at_once),](x, y, x.numel(), UP=up, VALUES=at_once, num_warps=8)
    return y
