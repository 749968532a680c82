"""A BF16 matrix in e4m3, in both layouts that a training step needs, in one pass: the scale comes from earlier steps."""

import torch
import triton
import triton.language as tl

HISTORY = 16  # steps whose largest values decide the next step's scale
SIDE = tl.constexpr(64)  # rows and columns of a program's tile
LARGEST = tl.constexpr(448.0)  # of e4m3


@triton.jit
def cast_and_measure(x, scale, largest, rowwise, colwise, rows, cols):
    """x / scale, stored as it lies and transposed; what is beyond e4m3 becomes its largest. `largest` grows to max |x|."""
    r = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)[:, None]
    c = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)[None, :]
    inside = (r < rows) & (c < cols)
    tile = tl.load(x + r * cols + c, mask=inside, other=0).to(tl.float32)
    tl.atomic_max(largest, tl.max(tl.abs(tile)), sem="relaxed")
    narrow = tl.clamp(tile / tl.load(scale), -LARGEST, LARGEST).to(rowwise.dtype.element_ty)
    tl.store(rowwise + r * cols + c, narrow, mask=inside)
    tl.store(colwise + c * rows + r, narrow, mask=inside)


class DelayedScales:
    """A scale for each of `count` tensors, which every step casts once (delayed scaling, as TE's recipe `DelayedScaling`).

    The first step has no history, so it measures before it casts. A tensor that outgrows its history saturates for one step, and
    tensors made from it outgrow theirs in the steps after.
    """

    def __init__(self, count, device):
        self.history = torch.zeros(count, HISTORY, device=device)  # column 0 is of the step that runs, column 1 of the one before
        self.scales = torch.ones(count, 4, device=device)[:, 0]  # 16 bytes apart: cuBLAS asks for aligned scales
        self.first = True

    def advance(self):
        """End a step: scales for the next one, and a free column for its largest values."""
        self.first = False
        torch.div(self.history.amax(1).clamp(min=1e-30), LARGEST.value, out=self.scales)
        self.history.copy_(self.history.roll(1, 1))
        self.history[:, 0] = 0

    def cast(self, number, x):
        """`x`, [rows, columns], as e4m3, its transpose in the same, and the scale of tensor `number`."""
        (rows, cols), scale, largest = x.shape, self.scales[number], self.history[number, 0]
        if self.first:
            scale.copy_(torch.linalg.vector_norm(x, torch.inf, dtype=torch.float32).clamp(min=1e-30) / LARGEST.value)
        if not x.is_cuda:  # Triton's interpreter truncates where a GPU rounds
            largest.copy_(torch.maximum(largest, x.abs().amax().float()))
            narrow = (x.float() / scale).clamp(-LARGEST.value, LARGEST.value).to(torch.float8_e4m3fn)
            return narrow, narrow.t().contiguous(), scale
        rowwise = torch.empty(rows, cols, dtype=torch.float8_e4m3fn, device=x.device)
        colwise = torch.empty(cols, rows, dtype=torch.float8_e4m3fn, device=x.device)
        grid = (triton.cdiv(rows, SIDE.value), triton.cdiv(cols, SIDE.value))
        cast_and_measure[grid](x, scale, largest, rowwise, colwise, rows, cols)
        return rowwise, colwise, scale
