"""One vector times 4-bit weights: words are unpacked in registers, so only packed weights are read from memory.

A warp has 512 bytes of each of its rows at once; the next are copied into shared memory meanwhile (cp.async). Rows come first there, so
that neighbouring threads have neighbouring banks. A code stays where it lies in its word: as a float the word's low bits are
code * 16**place * 2**-149, a denormal number, and exact. The input's factor undoes 16**place, and keeps products clear of underflow.
"""

import triton
import triton.language as tl

LIFT = tl.constexpr(100)  # inputs come times 2**100: code * 2**-149 * 2**100 is a normal number
PLACES = tl.constexpr((1, 1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1, 1 << 4))  # a mantissa has 23 bits: the last two are moved down


@triton.jit
def loaded(at, known, IS_WHOLE: tl.constexpr):
    """What lies at the pointers, 0 where that is beyond the end; IS_WHOLE: nowhere."""
    return tl.load(at) if IS_WHOLE else tl.load(at, mask=known, other=0)


@triton.jit
def fetched(words, scales, zeros, first, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr):
    """From chunk `first` on, words of this program's rows, [ROWS, 4 * CHUNKS], their scales and zero points, [CHUNKS, ROWS]."""
    program, row, whole = tl.program_id(0).to(tl.int64), tl.arange(0, ROWS), K % (32 * CHUNKS) == 0
    chunk, word = first + tl.arange(0, CHUNKS), 4 * first + tl.arange(0, 4 * CHUNKS)
    packed = loaded(words + (program * ROWS + row)[:, None] * (K // 8) + word[None, :], (word < K // 8)[None, :], whole)
    of, known = (program * (K // 128) + chunk // 4)[:, None] * ROWS + row[None, :], (chunk < K // 32)[:, None]
    return packed.to(tl.uint32, bitcast=True), loaded(scales + of, known, whole), loaded(zeros + of, known, whole)


@triton.jit
def products(packed, scale, zero, x, factors, first, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr):
    """[ROWS, CHUNKS]: what each chunk adds to its row's answer."""
    word, whole = 4 * first + tl.arange(0, 4 * CHUNKS), K % (32 * CHUNKS) == 0
    total, inputs = tl.zeros(packed.shape, tl.float32), tl.zeros(word.shape, tl.float32)
    for eighth in tl.static_range(8):
        at, known = eighth * (K // 8) + word, word < K // 8
        value = loaded(x + at, known, whole).to(tl.float32)
        value *= 2.0**LIFT / PLACES[eighth] if factors is None else loaded(factors + at, known, whole)
        inputs += value * PLACES[eighth]
        if eighth < 7:
            lower, code = value, packed & (15 << 4 * eighth) if eighth < 6 else packed >> 24
        else:  # the code before was not masked: what this one has added there is taken off
            value, code = value - lower, packed >> 24 & 15 << 4
        total += code.to(tl.float32, bitcast=True) * value[None, :]
    of_codes, of_inputs = tl.sum(tl.reshape(total, (ROWS, CHUNKS, 4)), 2), tl.sum(tl.reshape(inputs, (CHUNKS, 4)), 1)
    offset = zero.to(tl.uint32).to(tl.float32, bitcast=True)  # as the codes: zero * 2**-149
    return tl.trans(scale.to(tl.float32)) * (of_codes - tl.trans(offset) * of_inputs[None, :])


@triton.jit
def int4_gemv(words, scales, zeros, x, factors, y, rows, K: tl.constexpr, ROWS: tl.constexpr, CHUNKS: tl.constexpr, STAGES: tl.constexpr):
    """y = w x, where w has K columns, in groups of 128; with `factors`, y = w (x * factors * PLACES / 2**LIFT)."""
    total = tl.zeros((ROWS, CHUNKS), tl.float32)
    for first in tl.range(0, K // 32, CHUNKS, num_stages=STAGES):
        packed, scale, zero = fetched(words, scales, zeros, first, K, ROWS, CHUNKS)
        if rows > 0:  # always; what is loaded within a branch is not copied ahead: inputs are in the L1
            total += products(packed, scale, zero, x, factors, first, K, ROWS, CHUNKS)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tl.store(y + row, (tl.sum(total, 1) * 2.0 ** (149 - LIFT)).to(y.dtype.element_ty), mask=row < rows)
