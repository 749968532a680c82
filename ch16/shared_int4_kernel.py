"""One vector times 4-bit weights: words are unpacked in registers, so only packed weights are read from memory.

A warp has 512 bytes of each of its rows at once, 32 weights of a row in a thread; what comes next is copied into shared memory meanwhile
(cp.async). Rows come first there, so that neighbouring threads have neighbouring banks. A code stays where it lies in its word: as a float
the word's low bits are code * 16**place * 2**-149, a denormal number, and exact. So a weight takes a mask and one fused multiply-add, and
no conversion. The input's factor undoes 16**place, and keeps products clear of underflow.
"""

import triton
import triton.language as tl

LIFT = tl.constexpr(100)  # inputs come times 2**100: code * 2**-149 * 2**100 is a normal number
PLACES = tl.constexpr((1, 1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1, 1 << 4))  # a mantissa has 23 bits: the last two are moved down


@triton.jit
def fetched(words, scales, zeros, first, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr):
    """From chunk `first` on, words of this program's rows, [ROWS, 4 * CHUNKS], their scales and zero points, [CHUNKS, ROWS]."""
    program, row = tl.program_id(0).to(tl.int64), tl.arange(0, ROWS)
    chunk, word = first + tl.arange(0, CHUNKS), 4 * first + tl.arange(0, 4 * CHUNKS)
    at = (program * ROWS + row)[:, None] * (K // 8) + word[None, :]
    of = (program * (K // 128) + chunk // 4)[:, None] * ROWS + row[None, :]
    if K % (32 * CHUNKS):  # 0 beyond the end
        known = (chunk < K // 32)[:, None]
        packed = tl.load(words + at, mask=(word < K // 8)[None, :], other=0, eviction_policy="evict_first")
        return packed.to(tl.uint32, bitcast=True), tl.load(scales + of, mask=known, other=0.0), tl.load(zeros + of, mask=known, other=0)
    packed = tl.load(words + at, eviction_policy="evict_first")
    return packed.to(tl.uint32, bitcast=True), tl.load(scales + of), tl.load(zeros + of)


@triton.jit
def inputs_of(x, factors, at, known, eighth: tl.constexpr, IS_WHOLE: tl.constexpr, HAS_FACTORS: tl.constexpr):
    """Inputs of the codes at `eighth` of the words, times what undoes the codes' place."""
    value = (tl.load(x + at) if IS_WHOLE else tl.load(x + at, mask=known, other=0.0)).to(tl.float32)
    if HAS_FACTORS:
        return value * (tl.load(factors + at) if IS_WHOLE else tl.load(factors + at, mask=known, other=0.0))
    return value * (2.0**LIFT / PLACES[eighth])


@triton.jit
def products(packed, scale, zero, x, factors, first, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr, HAS_FACTORS: tl.constexpr):
    """[ROWS, CHUNKS]: what each chunk adds to its row's answer."""
    word = 4 * first + tl.arange(0, 4 * CHUNKS)
    total = tl.zeros(packed.shape, tl.float32)
    inputs = tl.zeros(word.shape, tl.float32)
    for eighth in tl.static_range(8):
        value = inputs_of(x, factors, eighth * (K // 8) + word, word < K // 8, eighth, K % (32 * CHUNKS) == 0, HAS_FACTORS)
        inputs += value * PLACES[eighth]
        if eighth < 6:
            total += (packed & (15 << 4 * eighth)).to(tl.float32, bitcast=True) * value[None, :]
        elif eighth == 6:
            both, lower = packed >> 24, value
            total += both.to(tl.float32, bitcast=True) * value[None, :]
        else:  # what the upper code has added there is taken from its own input
            total += (both & 15 << 4).to(tl.float32, bitcast=True) * (value - lower)[None, :]
    of_codes = tl.sum(tl.reshape(total, (ROWS, CHUNKS, 4)), 2)
    of_inputs = tl.sum(tl.reshape(inputs, (CHUNKS, 4)), 1)
    offset = tl.trans(zero.to(tl.uint32).to(tl.float32, bitcast=True))  # as the codes: zero * 2**-149
    return tl.trans(scale.to(tl.float32)) * (of_codes - offset * of_inputs[None, :])


@triton.jit
def int4_gemv(
    words,
    scales,
    zeros,
    x,
    factors,
    y,
    rows,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    CHUNKS: tl.constexpr,
    STAGES: tl.constexpr,
    HAS_FACTORS: tl.constexpr,
):
    """y = w x, where w has K columns, in groups of 128; with `factors`, y = w (x * factors * PLACES / 2**LIFT)."""
    total = tl.zeros((ROWS, CHUNKS), tl.float32)
    for first in tl.range(0, K // 32, CHUNKS, num_stages=STAGES):
        packed, scale, zero = fetched(words, scales, zeros, first, K, ROWS, CHUNKS)
        if rows > 0:  # always; what is loaded within a branch is not copied ahead: inputs are in the L1
            total += products(packed, scale, zero, x, factors, first, K, ROWS, CHUNKS, HAS_FACTORS)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(y + row, (tl.sum(total, 1) * 2.0 ** (149 - LIFT)).to(y.dtype.element_ty), mask=row < rows)
