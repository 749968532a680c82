"""How 16-bit words of four 4-bit codes come apart, two words at once: the codes lie as in shared_aged_cache.py."""

import triton
import triton.language as tl

COMPILED = tl.constexpr(not triton.knobs.runtime.interpret)  # the interpreter knows no PTX


@triton.jit
def mantissas(words, SHIFT: tl.constexpr, MASK: tl.constexpr):
    """1024 + (words >> SHIFT & MASK) in float16: 0x6400 is 1024, and the last bit of its mantissa is 1. In PTX two words at once."""
    if COMPILED:
        code: tl.constexpr = f"{{ .reg .b32 t; shr.b32 t, $1, {SHIFT}; lop3.b32 $0, t, {MASK * 65537}, 0x64006400, 0xEA; }}"  # a & b | c
        return tl.inline_asm_elementwise(code, "=r,r", [words], dtype=tl.float16, is_pure=True, pack=2)
    return (words >> SHIFT & MASK | 0x6400).to(tl.float16, bitcast=True)


@triton.jit
def quarters(words):
    """Four tensors of a row's quarters, in float16, exactly; 16 * code / 16 saves a shift."""
    first, third = mantissas(words, 0, 15) - 1032.0, mantissas(words, 8, 15) - 1032.0
    return first, mantissas(words, 0, 240) * 0.0625 - 72.0, third, mantissas(words, 8, 240) * 0.0625 - 72.0
