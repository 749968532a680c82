"""NVFP4 in Triton and PyTorch: e2m1 in blocks of 16, a scale in e4m3 per block.

A word of 16 bits has four codes of a row: word i has element i + j * dim / 4 for j of 0 to 3. A code's sign and its other three bits lie
where a shift, the same for two words of a register, brings them to those of a float16. Scales lie alike: four to a word of 32 bits.
"""

import torch
import triton
import triton.language as tl

from common.block_formats import e2m1_codes

COMPILED = tl.constexpr(not triton.knobs.runtime.interpret)  # the interpreter knows no PTX
SIGNS, OTHERS = (15, 12, 14, 13), (9, 6, 3, 0)  # of a word's codes: the sign bits, and where the others begin
LARGEST = 6 * 448  # the largest e2m1 times the largest e4m3


@triton.jit
def code_of(x):
    """The e2m1 nearest to x, as 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign. Of two equally near ones, the even code."""
    size = tl.abs(x)
    code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
    code += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    return code | (x < 0).to(tl.int32) << 3


@triton.jit
def stored_quarter(row, scales, whole, QUARTER: tl.constexpr, SIGN: tl.constexpr, DIM: tl.constexpr):
    """Stores the scales of a quarter of DIM elements of bf16; returns its codes, [blocks, 16], where they lie in their words."""
    block = tl.arange(0, DIM // 64)
    x = tl.load(row + QUARTER * (DIM // 4) + block[:, None] * 16 + tl.arange(0, 16)[None, :]).to(tl.float32) / whole
    scale = tl.maximum(tl.max(tl.abs(x), 1) / 6, 2.0**-9).to(tl.float8e4nv)  # the least e4m3 that is not 0
    tl.store(scales + block * 4 + QUARTER, scale)
    code = code_of(x / scale.to(tl.float32)[:, None])
    return (code >> 3) << SIGN | (code & 7) << (9 - 3 * QUARTER)


@triton.jit
def store_nvfp4(row, cache, scales, whole, DIM: tl.constexpr):
    """Quantizes one row of DIM elements: DIM / 4 words and DIM / 16 scales."""
    words = stored_quarter(row, scales, whole, 0, 15, DIM) | stored_quarter(row, scales, whole, 1, 12, DIM)
    words |= stored_quarter(row, scales, whole, 2, 14, DIM) | stored_quarter(row, scales, whole, 3, 13, DIM)
    at = tl.arange(0, DIM // 64)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(cache + at, words.to(tl.int16))


@triton.jit
def float16_of(words, AT: tl.constexpr, SIGN: tl.constexpr):
    """e2m1 as float16, / 2**14: moved left by AT, bits are exponent and mantissa; by SIGN, the sign. In PTX two words at once."""
    if COMPILED:
        both: tl.constexpr = f"{{ .reg .b32 a, b; shl.b32 a, $1, {AT}; shl.b32 b, $1, {SIGN}; and.b32 b, b, 0x80008000; "
        one: tl.constexpr = f"{{ .reg .b32 a; shl.b32 a, $1, {AT}; and.b32 $0, a, 0x8E008E00; }}"
        code: tl.constexpr = one if AT == SIGN else both + "lop3.b32 $0, a, 0x0E000E00, b, 0xEA; }"  # a & b | c
        return tl.inline_asm_elementwise(code, "=r,r", [words], dtype=tl.float16, is_pure=True, pack=2)
    bits = (words.to(tl.int32) << AT & 0x0E00) | (words.to(tl.int32) << SIGN & 0x8000)
    return bits.to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def spread(scales, QUARTER: tl.constexpr, DIM: tl.constexpr):
    """Scales of a quarter, for each element."""
    scale = (scales >> 8 * QUARTER).to(tl.int8).to(tl.float8e4nv, bitcast=True).to(tl.float16)
    return tl.broadcast_to(scale[:, :, None], (scale.shape[0], DIM // 64, 16)).reshape(scale.shape[0], DIM // 4)


@triton.jit
def scaled_quarters(cache, scales, slot, inside, DIM: tl.constexpr):
    """The four quarters of rows `slot`, times their blocks' scales, / 2**14: multiples of 2**-24, which float16 has."""
    lane, block = tl.arange(0, DIM // 4)[None, :], tl.arange(0, DIM // 64)[None, :]
    words = tl.load(cache + slot[:, None] * (DIM // 4) + lane, mask=inside[:, None], other=0)
    of = tl.load(scales.to(tl.pointer_type(tl.int32)) + slot[:, None] * (DIM // 64) + block, mask=inside[:, None], other=0)
    first, second = float16_of(words, 0, 0) * spread(of, 0, DIM), float16_of(words, 3, 3) * spread(of, 1, DIM)
    return first, second, float16_of(words, 6, 1) * spread(of, 2, DIM), float16_of(words, 9, 2) * spread(of, 3, DIM)


def quantized(x):
    """`x`, bf16 [..., dim], as (words [..., dim / 4], scales in e4m3 [..., dim / 16], the float32 scale of all of them [1])."""
    whole = (x.abs().amax().float() / LARGEST).clamp(min=1e-30)
    codes, scales = [], []
    for page in x.split(4096):  # a part of the cache at a time: in float32 all of it would be large
        blocks = page.float().unflatten(-1, (-1, 16)) / whole
        scale = (blocks.abs().amax(-1) / 6).clamp(min=2.0**-9).to(torch.float8_e4m3fn)
        scaled = (blocks / scale.float()[..., None]).flatten(-2)
        quarters = zip(e2m1_codes(scaled).int().chunk(4, -1), SIGNS, OTHERS, strict=True)
        codes.append(sum((code >> 3 << sign) | (code & 7) << other for code, sign, other in quarters).to(torch.int16))
        scales.append(scale.unflatten(-1, (4, -1)).transpose(-1, -2).flatten(-2))
    return torch.cat(codes), torch.cat(scales), whole.view(1)
