"""A matrix of 4-bit weights times one vector: words are unpacked in registers, so only packed weights are read from memory."""

import torch
import triton
import triton.language as tl

ROWS, GROUPS = 32, 8  # of a program's tile: 512 bytes a row
ROWS_IN_THE_INTERPRETER = 512  # which takes as long for a program, whatever its tile


@triton.jit
def int4_gemv(words, scales, zeros, x, y, rows, groups, ROWS: tl.constexpr, GROUPS: tl.constexpr):
    """y = w x for groups of 128. A code in the mantissa of 2**23 is a float without a conversion: 2**23 + code * 16**position."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    of_row = row.to(tl.int64)[None, :] * groups
    total = tl.zeros((GROUPS, ROWS), tl.float32)  # groups first: a warp's lanes get words of one row, and a thread's inputs serve its rows
    for first in range(0, groups, GROUPS):
        group = first + tl.arange(0, GROUPS)
        word = group[:, None] * 16 + tl.arange(0, 16)[None, :]
        known = (group < groups)[:, None]
        some = known & (row < rows)[None, :]
        packed = tl.load(words + of_row[:, :, None] * 16 + word[:, None, :], mask=some[:, :, None], other=0)
        low, high = packed & 0xFFFFF | 0x4B000000, (packed >> 20) & 0xFFF | 0x4B000000
        products = tl.zeros((GROUPS, ROWS, 16), tl.float32)
        inputs = tl.zeros((GROUPS, 16), tl.float32)
        for eighth in tl.static_range(8):
            value = tl.load(x + eighth * groups * 16 + word, mask=known, other=0.0).to(tl.float32)
            inputs += value
            if eighth < 5:  # the others lie beyond the mantissa's bits
                bits, place = low & (0x7F800000 | 15 << 4 * eighth), 1 << 4 * eighth
            else:
                bits, place = high & (0x7F800000 | 15 << 4 * (eighth - 5)), 1 << 4 * (eighth - 5)
            code = bits.to(tl.float32, bitcast=True) - 8388608.0
            products += code * (value * (1.0 / place))[:, None, :]
        scale = tl.load(scales + of_row + group[:, None], mask=some, other=0.0).to(tl.float32)
        zero = tl.load(zeros + of_row + group[:, None], mask=some, other=0).to(tl.float32)
        total += scale * (tl.sum(products, 2) - zero * tl.sum(inputs, 1)[:, None])
    tl.store(y + row, tl.sum(total, 0).to(y.dtype.element_ty), mask=row < rows)


def linear(q):
    """A function from [1, k] to [1, rows], in x's dtype, for weights `q` (Int4 in groups of 128)."""
    rows, groups, group = q.codes.shape
    words = torch.zeros(rows, groups, group // 8, dtype=torch.int64, device=q.codes.device)
    for eighth, codes in enumerate(q.codes.view(rows, groups, 8, -1).unbind(2)):
        words |= codes.long() << 4 * eighth
    words, scales, zeros = words.to(torch.int32), q.scale.half().squeeze(-1), q.zero.to(torch.uint8).squeeze(-1)

    def multiply(x):
        y = x.new_empty(1, rows)
        at_once = ROWS if isinstance(int4_gemv, triton.JITFunction) else ROWS_IN_THE_INTERPRETER
        int4_gemv[triton.cdiv(rows, at_once),](words, scales, zeros, x, y, rows, groups, ROWS=at_once, GROUPS=GROUPS, num_warps=4)
        return y

    return multiply
