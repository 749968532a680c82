"""Optimized: Gluon: the layout of a row over threads is written down."""
# needs: fp8
# predicts: baseline 0.919 ms = 21 * rows * width / dram_copy on h100  (bytes per element of five kernels)
# predicts: optimized 0.131 ms = 3 * rows * width / dram_copy on h100  (2 bytes in, 1 out)
# proves: kernel quantized_norm
# proves: launches == 1
# has: ld_128bit
# has: spills == 0

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

ELEMENTS = 8  # of bf16 in 16 bytes, the widest load


@gluon.jit
def sum_and_maximum(a, b, c, d):
    return a + c, gl.maximum(b, d)


@gluon.jit
def quantized_norm(x, weight, y, scale, width, WIDE: gl.constexpr, LAYOUT: gl.constexpr):
    row, at = gl.program_id(0).to(gl.int64), gl.arange(0, WIDE, layout=LAYOUT)
    inside = at < width
    value = gl.load(x + row * width + at, mask=inside, other=0.0).to(gl.float32)
    n = value * gl.load(weight + at, mask=inside, other=0.0).to(gl.float32)
    squares, largest = gl.reduce((value * value, gl.abs(n)), 0, sum_and_maximum)  # one reduction: the maximum needs no root
    root = gl.rsqrt(squares / width + 1e-6)
    largest = gl.maximum(largest * root, 1e-12)
    gl.store(y + row * width + at, (n * (root * (448.0 / largest))).to(gl.float8e4nv), mask=inside)
    gl.store(scale + row, largest / 448.0)


def prepare(x, weight):
    rows, width = x.shape
    y = torch.empty(rows, width, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(rows, device=x.device)
    wide = triton.next_power_of_2(width)
    warps = min(max(wide // 512, 1), 8)
    layout = gl.BlockedLayout([ELEMENTS], [32], [warps], [0])

    def step():
        quantized_norm[rows,](x, weight, y, scale, width, WIDE=wide, LAYOUT=layout, num_warps=warps)
        return y, scale

    return step
