"""One vector times 4-bit weights: words are unpacked in registers, so only packed weights are read from memory.

A thread has 16 bytes of each of its rows at once, 32 weights a row; what comes next is copied into shared memory meanwhile (cp.async). A
code stays where it lies in its word: as a float the word's low bits are code * 16**place * 2**-149, a denormal number, and exact. So a
weight takes a mask and one fused multiply-add, and no conversion. The input's factor undoes 16**place, and keeps products clear of
underflow.
"""

import triton
import triton.language as tl

LIFT = tl.constexpr(100)  # inputs come times 2**100: code * 2**-149 * 2**100 is a normal number
PLACES = tl.constexpr((1, 1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1, 1))  # the last two are moved down: a mantissa has 23 bits


@triton.jit
def fetched(words, scales, row, first, K: tl.constexpr, CHUNKS: tl.constexpr):
    """Words of the rows from chunk `first` on, [CHUNKS, rows, 4], and their scales."""
    chunk = first + tl.arange(0, CHUNKS)
    if K % (32 * CHUNKS):
        chunk = tl.minimum(chunk, K // 32 - 1)  # what is beyond the end meets inputs of 0
    word = chunk[:, None] * 4 + tl.arange(0, 4)[None, :]
    packed = tl.load(words + (row * (K // 8))[None, :, None] + word[:, None, :], eviction_policy="evict_first")
    scale = tl.load(scales + (row * (K // 128))[None, :] + (chunk // 4)[:, None])
    return packed.to(tl.uint32, bitcast=True), scale.to(tl.uint32, bitcast=True)


@triton.jit
def products(packed, scale, x, factors, first, K: tl.constexpr, CHUNKS: tl.constexpr):
    """[CHUNKS, rows]: what each chunk adds to its row's answer."""
    chunk = first + tl.arange(0, CHUNKS)
    word = chunk[:, None] * 4 + tl.arange(0, 4)[None, :]
    known = (chunk < K // 32)[:, None]
    total = tl.zeros(packed.shape, tl.float32)
    inputs = tl.zeros(word.shape, tl.float32)
    for eighth in tl.static_range(8):
        at = eighth * (K // 8) + word
        if K % (32 * CHUNKS):
            value = tl.load(x + at, mask=known, other=0.0).to(tl.float32) * tl.load(factors + at, mask=known, other=0.0)
        else:
            value = tl.load(x + at).to(tl.float32) * tl.load(factors + at)
        code = packed & (15 << 4 * eighth) if eighth < 6 else packed >> 4 * eighth & 15
        inputs += value * PLACES[eighth]
        total += code.to(tl.float32, bitcast=True) * value[:, None, :]
    zero = (scale & 15).to(tl.float32, bitcast=True)  # as the codes: zero * 2**-149
    factor = (scale >> 16).to(tl.uint16).to(tl.float16, bitcast=True).to(tl.float32)
    return factor * (tl.sum(total, 2) - zero * tl.sum(inputs, 1)[:, None])


@triton.jit
def int4_gemv(words, scales, x, factors, y, rows, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr, STAGES: tl.constexpr):
    """y = w (x * factors * PLACES / 2**LIFT), where w has K columns, in groups of 128."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((CHUNKS, ROWS), tl.float32)  # chunks first: a warp's lanes get neighbouring words of one row
    for first in tl.range(0, K // 32, CHUNKS, num_stages=STAGES):
        packed, scale = fetched(words, scales, row, first, K, CHUNKS)
        if rows > 0:  # always; what is loaded within a branch is not copied ahead: inputs are in the L1
            total += products(packed, scale, x, factors, first, K, CHUNKS)
    tl.store(y + row, (tl.sum(total, 0) * 2.0 ** (149 - LIFT)).to(y.dtype.element_ty), mask=row < rows)
