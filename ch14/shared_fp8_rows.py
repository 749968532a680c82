"""Quantize the rows of a bf16 matrix to e4m3, each with a scale of its own."""

import torch
import triton
import triton.language as tl

LARGEST = tl.constexpr(448.0)  # of e4m3


@triton.jit
def quantize_rows(x, q, scale, k, WIDE: tl.constexpr):
    """Scale each row so that its largest magnitude is 448; the row stays in registers between its two uses."""
    row = tl.program_id(0)
    at = tl.arange(0, WIDE)
    inside = at < k
    value = tl.load(x + row.to(tl.int64) * k + at, mask=inside, other=0.0).to(tl.float32)
    unit = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / LARGEST
    tl.store(q + row.to(tl.int64) * k + at, (value / unit).to(tl.float8e4nv), mask=inside)
    tl.store(scale + row, unit)


def quantized(x):
    """Storage for the rows of `x` in e4m3 and for their scales, and a function that fills both."""
    rows, k = x.shape
    q = torch.empty(rows, k, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty(rows, device=x.device)
    wide = triton.next_power_of_2(k)
    return q, scale, lambda: quantize_rows[(rows,)](x, q, scale, k, WIDE=wide, num_warps=min(max(wide // 512, 1), 16))
