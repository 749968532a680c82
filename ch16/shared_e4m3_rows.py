"""How rows of keys or values in e4m3 or bf16 reach the tensor cores."""

import triton
import triton.language as tl

COMPILED = tl.constexpr(not triton.knobs.runtime.interpret)  # the interpreter knows no PTX


@triton.jit
def e4m3(words, HIGH: tl.constexpr):
    """The e4m3 in the low or the high byte of 16-bit words, in float16, exactly. In PTX two words at once."""
    if COMPILED:
        pick: tl.constexpr = "prmt.b32 t, $1, 0, 0x31;" if HIGH else "prmt.b32 t, $1, 0, 0x20;"
        code: tl.constexpr = "{ .reg .b32 t; .reg .b16 u; " + pick + " cvt.u16.u32 u, t; cvt.rn.f16x2.e4m3x2 $0, u; }"
        return tl.inline_asm_elementwise(code, "=r,r", [words], dtype=tl.float16, is_pure=True, pack=2)
    return (words >> (8 if HIGH else 0) & 255).to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float16)


@triton.jit
def halves(cache, slot, DIM: tl.constexpr, FP8: tl.constexpr):
    """Rows `slot` as two [tokens, DIM / 2]: in e4m3, without scales, even and odd elements; in bf16 the first half and the second.

    `ldmatrix` transposes elements of 16 bits, not of 8: so e4m3 comes in pairs, and is converted where tensor cores want it.
    """
    lane = tl.arange(0, DIM // 2)
    if FP8:
        words = tl.load(cache.to(tl.pointer_type(tl.int16)) + slot[:, None] * (DIM // 2) + lane[None, :])
        first, second = e4m3(words, False), e4m3(words, True)
    else:
        at = cache + slot[:, None] * DIM + lane[None, :]
        first, second = tl.load(at), tl.load(at + DIM // 2)
    return first, second
