"""Optimized: Triton: weights are loaded while the kernel before runs."""
# needs: tma
# predicts: baseline 0.250 ms = layers * (4 * dim * dim / dram_read + 0.8e-6 + 2.2e-6)  (weights; DRAM latency; rest of a kernel, assumed)
# predicts: optimized 0.198 ms = layers * (0.4 * (4 * dim * dim / dram_read + 0.8e-6) + 2.2e-6 + 0.2e-6)  (+ rows summed across warps)
# proves: pdl_wait
# proves: pdl_launch_dependents
# has: spills == 0

import torch
import triton
import triton.language as tl


@triton.jit
def layer(weight, x, y, dim, ROWS: tl.constexpr, COLS: tl.constexpr):
    """One layer: y = max(0, weight x)."""
    tl.extra.cuda.gdc_launch_dependents()  # the next layer may start once every program of this layer has started
    row, col = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLS)
    # The prologue: loads rows of weights, which no kernel writes.
    inside = (row < dim)[:, None] & (col < dim)[None, :]
    w = tl.load(weight + row[:, None].to(tl.int64) * dim + col[None, :], mask=inside, other=0.0)
    tl.extra.cuda.gdc_wait()  # x is read below, so the previous layer must have completed
    sums = tl.sum(w * tl.load(x + col, mask=col < dim, other=0.0)[None, :], axis=1)
    tl.store(y + row, tl.maximum(sums, 0.0), mask=row < dim)


def chained(x, weight, layers, dim, launch_pdl):
    """A step that launches all layers; `launch_pdl` lets each start while the one before runs."""
    rows, cols = 8, triton.next_power_of_2(dim)
    between = [torch.empty_like(x), torch.empty_like(x)]
    y = torch.empty_like(x)
    written = [*(between[each % 2] for each in range(layers - 1)), y]
    chain = list(zip(weight, [x, *written], written, strict=False))

    def step():
        for matrix, of, to in chain:
            layer[triton.cdiv(dim, rows),](matrix, of, to, dim, ROWS=rows, COLS=cols, num_warps=8, launch_pdl=launch_pdl)
        return y

    return step


def prepare(x, weight, layers, dim):
    return chained(x, weight, layers, dim, launch_pdl=True)
