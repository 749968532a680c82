"""How 16-bit words of four 4-bit codes or two e4m3 come apart, two words at once: codes lie as in shared_aged_cache.py."""

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


@triton.jit
def e4m3(words, HIGH: tl.constexpr):
    """The e4m3 in the low or the high byte of 16-bit words, in float16, exactly. In PTX two words at once."""
    if COMPILED:
        pick: tl.constexpr = "prmt.b32 t, $1, 0, 0x31;" if HIGH else "prmt.b32 t, $1, 0, 0x20;"
        code: tl.constexpr = "{ .reg .b32 t; .reg .b16 u; " + pick + " cvt.u16.u32 u, t; cvt.rn.f16x2.e4m3x2 $0, u; }"
        return tl.inline_asm_elementwise(code, "=r,r", [words], dtype=tl.float16, is_pure=True, pack=2)
    return (words >> (8 if HIGH else 0) & 255).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float16)
