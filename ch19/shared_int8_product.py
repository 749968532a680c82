"""A product of INT8 matrices whose 32-bit sums become BF16 in its epilogue: scaled in registers, before they are stored."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS, COLS, DEPTH, BAND = (
    128,
    256,
    128,
    8,
)  # a tile of y, elements of k per K-step, and rows of tiles whose programs share operands in the L2


@triton.jit
def scaled_int8(
    from_a, from_b, a_scale, b_scale, to, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, BAND: tl.constexpr
):
    """y[m, n] = a[m, k] b[n, k]^T, integers, times the scale of each row of a and of each row of b; a program takes several tiles."""
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=True):
        first, within = index // (BAND * tile_cols) * BAND, index % (BAND * tile_cols)
        height = tl.minimum(tile_rows - first, BAND)
        row, col = first + within % height, within // height
        sums = tl.zeros((ROWS, COLS), tl.int32)
        for at in range(0, k, DEPTH):
            sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums, out_dtype=tl.int32)
        rows, cols = row * ROWS + tl.arange(0, ROWS), col * COLS + tl.arange(0, COLS)
        by_row = tl.load(a_scale + rows, mask=rows < m, other=0.0)
        by_col = tl.load(b_scale + cols, mask=cols < n, other=0.0)
        to.store([row * ROWS, col * COLS], (sums.to(tl.float32) * by_row[:, None] * by_col[None, :]).to(tl.bfloat16))


def product(a, b, a_scale, b_scale, y):
    """A step that fills y: a INT8 [m, k], b INT8 [n, k], scales float32 of the rows of each, y BF16 [m, n].

    k is a multiple of 16 and at most 133144, as sums have 32 bits; n is a multiple of 8.
    """
    (m, k), n = a.shape, b.shape[0]
    from_a, from_b = TensorDescriptor.from_tensor(a, [ROWS, DEPTH]), TensorDescriptor.from_tensor(b, [COLS, DEPTH])
    to = TensorDescriptor.from_tensor(y, [ROWS, COLS])
    sms = torch.cuda.get_device_properties(y.device).multi_processor_count if y.is_cuda else 1
    grid = (min(sms, triton.cdiv(m, ROWS) * triton.cdiv(n, COLS)),)
    sizes = {"ROWS": ROWS, "COLS": COLS, "DEPTH": DEPTH, "BAND": BAND}
    return lambda: scaled_int8[grid](from_a, from_b, a_scale, b_scale, to, m, n, k, **sizes, num_warps=8, num_stages=3)
