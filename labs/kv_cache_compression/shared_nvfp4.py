"""NVFP4 in Triton and PyTorch: e2m1 in blocks of 16, a scale in e4m3 per block. A byte has elements i and i + dim / 2 of a row."""

import torch
import triton
import triton.language as tl

from common.block_formats import e2m1_codes

LARGEST = 6 * 448  # the largest e2m1 times the largest e4m3


@triton.jit
def code_of(x):
    """The e2m1 nearest to x, as 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign. Of two equally near ones, the even code."""
    size = tl.abs(x)
    code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
    code += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    return code | (x < 0).to(tl.int32) << 3


@triton.jit
def half_codes(row, scales, whole, DIM: tl.constexpr):
    """Codes of DIM / 2 elements of bf16, [blocks, 16], whose scales are stored."""
    block = tl.arange(0, DIM // 32)
    x = tl.load(row + block[:, None] * 16 + tl.arange(0, 16)[None, :]).to(tl.float32) / whole
    scale = tl.maximum(tl.max(tl.abs(x), 1) / 6, 2.0**-9).to(tl.float8e4nv)  # the least e4m3 that is not 0
    tl.store(scales + block, scale)
    return code_of(x / scale.to(tl.float32)[:, None])


@triton.jit
def store_nvfp4(row, cache, scales, whole, DIM: tl.constexpr):
    """Quantizes one row of DIM elements: DIM / 2 bytes and DIM / 16 scales."""
    low = half_codes(row, scales, whole, DIM)
    high = half_codes(row + DIM // 2, scales + DIM // 32, whole, DIM)
    at = tl.arange(0, DIM // 32)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(cache + at, (low | high << 4).to(tl.uint8))


@triton.jit
def value_of(code):
    """e2m1 as float16, exactly: its bits lie where float16 has them, but for exponents that are less by 14."""
    bits = (code & 8) << 12 | (code & 7) << 9
    return bits.to(tl.int16).to(tl.float16, bitcast=True) * 16384.0


@triton.jit
def values_of(cache, scales, slot, lane, inside, DIM: tl.constexpr):
    """Both halves of rows `slot`, each times its blocks' scales, in float16."""
    byte = tl.load(cache + slot[:, None] * (DIM // 2) + lane[None, :], mask=inside[:, None], other=0).to(tl.int32)
    at = scales + slot[:, None] * (DIM // 16) + lane[None, :] // 16
    first = tl.load(at, mask=inside[:, None], other=0.0).to(tl.float16)
    second = tl.load(at + DIM // 32, mask=inside[:, None], other=0.0).to(tl.float16)
    return (value_of(byte & 15) * first).to(tl.float16), (value_of(byte >> 4) * second).to(tl.float16)


def quantized(x):
    """`x`, bf16 [..., dim], as (bytes [..., dim / 2], scales in e4m3 [..., dim / 16], the float32 scale of all of them [1])."""
    whole = (x.abs().amax().float() / LARGEST).clamp(min=1e-30)
    codes, scales = [], []
    for page in x.split(4096):  # a part of the cache at a time: in float32 all of it would be large
        blocks = page.float().unflatten(-1, (-1, 16)) / whole
        scale = (blocks.abs().amax(-1) / 6).clamp(min=2.0**-9).to(torch.float8_e4m3fn)
        scaled = (blocks / scale.float()[..., None]).flatten(-2)
        low, high = e2m1_codes(scaled).chunk(2, dim=-1)
        codes.append(low | high << 4)
        scales.append(scale)
    return torch.cat(codes), torch.cat(scales), whole.view(1)
