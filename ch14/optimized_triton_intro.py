"""Optimized: one Triton program keeps a row in registers: 2 passes."""
# predicts: baseline 0.499 ms = 8 * 4 * rows * cols / dram_copy  (5 reads and 3 writes of the matrix)
# predicts: optimized 0.125 ms = 2 * 4 * rows * cols / dram_copy  (1 read and 1 write)
# proves: launches == 1

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row + lane, mask=lane < cols, other=-float("inf"))
    numerator = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row + lane, numerator / tl.sum(numerator, axis=0), mask=lane < cols)


def prepare(x, rows, cols):
    y = torch.empty_like(x)
    block = triton.next_power_of_2(cols)
    warps = min(max(block // 512, 1), 16)  # 16 values a thread, 32 in a row of 16384: all in registers

    def step():
        softmax_row[(rows,)](x, y, cols, BLOCK=block, num_warps=warps)
        return y

    return step
