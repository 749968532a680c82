"""A product of few rows, c = a b^T in BF16, summed in fp32, with k split over programs or not."""

import torch
import triton
import triton.language as tl


@triton.jit
def skinny(a, b, c, used, m, n, k, part, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr):
    """Sums of `part` elements of k, from program_id(2) * part on: c[program_id(2), m, n]. The first program writes what it `used`."""
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    depth, first = tl.arange(0, DEPTH), tl.program_id(2) * part
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in range(first, tl.minimum(first + part, k), DEPTH):
        inside = depth + at < k
        x = tl.load(a + rows[:, None] * k + depth[None, :] + at, mask=(rows < m)[:, None] & inside[None, :], other=0.0)
        y = tl.load(b + cols[None, :] * k + depth[:, None] + at, mask=(cols < n)[None, :] & inside[:, None], other=0.0)
        sums = tl.dot(x, y, sums)
    inside = (rows < m)[:, None] & (cols < n)[None, :]
    tl.store(c + (tl.program_id(2) * m + rows[:, None]) * n + cols[None, :], sums.to(c.dtype.element_ty), mask=inside)
    if tl.program_id(0) + tl.program_id(1) + tl.program_id(2) == 0:
        tl.store(used, COLS)
        tl.store(used + 1, DEPTH)
        tl.store(used + 2, STAGES)
        tl.store(used + 3, tl.num_programs(2))


@triton.jit
def join(parts, c, size, splits, BLOCK: tl.constexpr):
    """c[size], the sum of parts[splits, size] in their order, so that a split of k has the same bits in every call."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for split in range(splits):
        sums += tl.load(parts + split * size + at, mask=at < size, other=0.0)
    tl.store(c + at, sums.to(c.dtype.element_ty), mask=at < size)


def product(a, b, used, launch):
    """A step that returns c [m, n] for a [m, k] and b [n, k], and writes columns, depth, stages and splits of `launch` into `used`."""
    (m, k), n, splits = a.shape, b.shape[0], launch.splits
    if max(m * k, n * k, splits * m * n) >= 2**31:
        raise ValueError(f"found a product of {m} x {n} x {k}; expected matrices of less than 2**31 elements, as offsets have 32 bits")
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    sums = c if splits == 1 else torch.empty(splits, m, n, device=a.device)
    part = triton.cdiv(k, launch.depth * splits) * launch.depth
    grid = (triton.cdiv(n, launch.cols), triton.cdiv(m, launch.rows), splits)
    options = {"ROWS": launch.rows, "COLS": launch.cols, "DEPTH": launch.depth, "STAGES": launch.stages}

    def step():
        skinny[grid](a, b, sums, used, m, n, k, part, **options, num_warps=launch.warps, num_stages=launch.stages)
        if splits > 1:
            join[triton.cdiv(m * n, 256),](sums, c, m * n, splits, BLOCK=256, num_warps=4)
        return c

    return step
