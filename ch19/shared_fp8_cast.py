"""A BF16 matrix in FP8, in both layouts that a training step needs, with one scale: two passes over the matrix."""

import torch
import triton
import triton.language as tl

LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}
SIDE = tl.constexpr(64)  # rows and columns of a program's tile


@triton.jit
def cast_both(x, scale, rowwise, colwise, rows, cols):
    """x / scale, stored as it lies and transposed, so that neither copy needs a pass of its own."""
    r = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)[:, None]
    c = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)[None, :]
    inside = (r < rows) & (c < cols)
    tile = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32) / tl.load(scale)
    narrow = tile.to(rowwise.dtype.element_ty)
    tl.store(rowwise + r * cols + c, narrow, mask=inside)
    tl.store(colwise + c * rows + r, narrow, mask=inside)


def cast(x, dtype):
    """`x`, [rows, columns], as FP8 in `dtype`, its transpose [columns, rows] in the same, and their scale, float32.

    The scale maps the largest magnitude of `x` to the largest of `dtype` (current scaling, as TE's `Float8CurrentScaling`).
    """
    rows, cols = x.shape
    scale = torch.linalg.vector_norm(x, torch.inf, dtype=torch.float32).clamp(min=1e-30) / LARGEST[dtype]
    if not x.is_cuda:  # Triton's interpreter truncates where a GPU rounds
        narrow = (x.float() / scale).to(dtype)
        return narrow, narrow.t().contiguous(), scale
    rowwise = torch.empty(rows, cols, dtype=dtype, device=x.device)
    colwise = torch.empty(cols, rows, dtype=dtype, device=x.device)
    cast_both[(triton.cdiv(rows, SIDE.value), triton.cdiv(cols, SIDE.value))](x, scale, rowwise, colwise, rows, cols)
    return rowwise, colwise, scale
