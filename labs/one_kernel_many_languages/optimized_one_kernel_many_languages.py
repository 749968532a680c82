"""Optimized: Triton: a row stays in registers from load to e4m3."""
# predicts: baseline 0.919 ms = 21 * rows * width / dram_copy on h100  (bytes per element of five kernels)
# predicts: optimized 0.131 ms = 3 * rows * width / dram_copy on h100  (2 bytes in, 1 out)
# proves: kernel quantized_norm
# proves: launches == 1
# has: spills == 0

import torch
import triton
import triton.language as tl


@triton.jit
def sum_and_maximum(a, b, c, d):
    return a + c, tl.maximum(b, d)


@triton.jit
def quantized_norm(x, weight, y, scale, width, WIDE: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, WIDE)
    inside = at < width
    value = tl.load(x + row * width + at, mask=inside, other=0.0).to(tl.float32)
    n = value * tl.load(weight + at, mask=inside, other=0.0).to(tl.float32)
    # The norm's root is one factor of the row: the maximum does not wait for it, so both reductions are one.
    squares, largest = tl.reduce((value * value, tl.abs(n)), 0, sum_and_maximum)
    root = tl.rsqrt(squares / width + 1e-6)
    largest = tl.maximum(largest * root, 1e-12)
    tl.store(y + row * width + at, (n * (root * (448.0 / largest))).to(tl.float8e4nv), mask=inside)
    tl.store(scale + row, largest / 448.0)


def prepare(x, weight):
    rows, width = x.shape
    y = torch.empty(rows, width, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(rows, device=x.device)
    wide = triton.next_power_of_2(width)

    def step():
        quantized_norm[rows,](x, weight, y, scale, width, WIDE=wide, num_warps=min(max(wide // 512, 1), 8))
        return y, scale

    return step
