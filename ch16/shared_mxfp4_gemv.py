"""Vectors times the MXFP4 matrices of the experts that they go to: weights are unpacked in registers."""

import torch
import triton
import triton.language as tl

ROWS, BLOCKS = 32, 32  # of a program's tile: 512 bytes a row
ROWS_IN_THE_INTERPRETER = 512  # at most: fewer programs take less time


@triton.jit
def mxfp4_gemv(words, scales, biases, chosen, x, y, rows, blocks, SHARED: tl.constexpr, ROWS: tl.constexpr, BLOCKS: tl.constexpr):
    """y[slot] = w[chosen[slot]] x[slot // SHARED] + bias. Sign and magnitude go to a float32's bits 31 and 24 to 22: value / 2**126."""
    row, slot = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    of_row = tl.load(chosen + slot).to(tl.int64) * rows + row
    vector = x + (slot // SHARED) * blocks * 32
    total = tl.zeros((BLOCKS, ROWS), tl.float32)  # blocks first: a warp's lanes get words of one row, and a thread's inputs serve its rows
    for first in range(0, blocks, BLOCKS):
        block = first + tl.arange(0, BLOCKS)
        word = block[:, None] * 4 + tl.arange(0, 4)[None, :]
        known = (block < blocks)[:, None]
        some = known & (row < rows)[None, :]
        packed = tl.load(words + (of_row * blocks * 4)[None, :, None] + word[:, None, :], mask=some[:, :, None], other=0)
        products = tl.zeros((BLOCKS, ROWS, 4), tl.float32)
        for nibble in tl.static_range(8):
            value = tl.load(vector + nibble * blocks * 4 + word, mask=known, other=0.0).to(tl.float32)
            bits = ((packed << (28 - 4 * nibble)) >> 6) & -0x7E400000  # the shift to the right copies the sign
            products += bits.to(tl.float32, bitcast=True) * (value * 1.2676506002282294e30)[:, None, :]  # 2**100
        scale = tl.load(scales + (of_row * blocks)[None, :] + block[:, None], mask=some, other=0).to(tl.int32) << 23
        total += tl.sum(products, 2) * (scale.to(tl.float32, bitcast=True) * 67108864.0)  # 2**26
    answer = tl.sum(total, 0) + tl.load(biases + of_row, mask=row < rows, other=0.0).to(tl.float32)
    tl.store(y + slot.to(tl.int64) * rows + row, answer.to(y.dtype.element_ty), mask=row < rows)


def multiply(blocks, scales, biases, x, chosen):
    """[slots, rows] for bytes [experts, rows, k / 2], scales [experts, rows, k / 32], x [tokens, k] and the experts of each slot.

    Slots are tokens times the experts a token; `x` may also have a row a slot.
    """
    (_, rows, count), slots = scales.shape, chosen.numel()
    by_nibble = x.view(len(x), -1, 8).transpose(1, 2).contiguous()  # so that neighbouring words need neighbouring inputs
    y = x.new_empty(slots, rows)
    at_once, deep = ROWS, BLOCKS
    if not isinstance(mxfp4_gemv, triton.JITFunction):  # a tile of which the matrix fills half is enough
        at_once, deep = (min(most, 2 * triton.next_power_of_2(size)) for most, size in ((ROWS_IN_THE_INTERPRETER, rows), (BLOCKS, count)))
    grid = (triton.cdiv(rows, at_once), slots)
    sizes = {"SHARED": slots // len(x), "ROWS": at_once, "BLOCKS": deep}
    mxfp4_gemv[grid](blocks.view(torch.int32), scales, biases, chosen, by_nibble, y, rows, count, **sizes, num_warps=4)
    return y
