"""A product of one token whose weights lie in two formats; the device says which of them a launch reads."""

import torch
import triton
import triton.language as tl

LARGEST = 448.0  # of e4m3
ROWS, DEPTH = 8, 1024
ROWS_IN_THE_INTERPRETER = 1024  # at most: fewer programs take less time


@triton.jit
def rows_of(w, x, row, rows, k, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """Sums of rows of `w` times x, float32 [ROWS]."""
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    for first in range(0, k, DEPTH):
        at = first + tl.arange(0, DEPTH)
        value = tl.load(x + at, mask=at < k, other=0.0).to(tl.float32)
        weight = tl.load(w + row.to(tl.int64)[:, None] * k + at[None, :], mask=(row < rows)[:, None] & (at < k)[None, :], other=0.0)
        total += weight.to(tl.float32) * value[None, :]
    return tl.sum(total, 1)


@triton.jit
def switched_gemv(wide, narrow, scales, state, x, y, rows, k, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """y = w x, [rows]: from `narrow`, e4m3 with a scale per row, where state[0] is 1, else from `wide`."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    if tl.load(state) == 1:
        answer = rows_of(narrow, x, row, rows, k, ROWS, DEPTH) * tl.load(scales + row, mask=row < rows, other=0.0)
        tl.store(y + row, answer.to(y.dtype.element_ty), mask=row < rows)
    else:
        tl.store(y + row, rows_of(wide, x, row, rows, k, ROWS, DEPTH).to(y.dtype.element_ty), mask=row < rows)


def narrowed(w):
    """`w`, [rows, k], in e4m3, its float32 scales [rows], and how far off it is: the relative root mean square error, float32 []."""
    scales = w.abs().amax(1).float().clamp(min=1e-12) / LARGEST
    narrow = torch.empty_like(w, dtype=torch.float8_e4m3fn)
    wrong, all_of_it = torch.zeros(2, device=w.device)
    for part in torch.arange(len(w), device=w.device).split(4096):  # in float32 all of it would be large
        rows, scale = w[part].float(), scales[part, None]
        narrow[part] = (rows / scale).to(torch.float8_e4m3fn)
        wrong, all_of_it = wrong + (narrow[part].float() * scale - rows).square().sum(), all_of_it + rows.square().sum()
    return narrow, scales, (wrong / all_of_it).sqrt()


def multiply(wide, narrow, scales, state, x):
    """x w^T, [1, rows], for x [1, k]."""
    rows, k = wide.shape
    y = x.new_empty(1, rows)
    at_once, deep = ROWS, DEPTH
    if not isinstance(switched_gemv, triton.JITFunction):  # a tile of which the matrix fills half is enough
        at_once, deep = (min(most, 2 * triton.next_power_of_2(size)) for most, size in ((ROWS_IN_THE_INTERPRETER, rows), (DEPTH, k)))
    switched_gemv[triton.cdiv(rows, at_once),](wide, narrow, scales, state, x, y, rows, k, ROWS=at_once, DEPTH=deep, num_warps=8)
    return y
