"""Optimized: one grouped product multiplies the rows of all experts."""
# predicts: baseline 1.96 ms = 2 * 32 * tokens * 24.9e6 / (0.7 * bf16) + 32 * tokens * 2880 * 2 * 23 / dram_copy  (23 passes: counted)
# predicts: optimized 0.678 ms = 2 * 32 * (tokens / 8 + 64) * 24.9e6 / (0.4 * bf16) + 20 * 2e-6  (64: half a tile is empty; rate: assumed)
# proves: kernel grouped_product

import torch
import triton
import triton.language as tl
from shared_moe import by_expert, config_of, stages_of

from common.models.layers import activated

ROWS, COLS, DEPTH = (16, 128), 128, 64  # slots (least, most), outputs and inputs of a tile; 16 is the least that tensor cores take


@triton.jit
def grouped_product(x, w, bias, order, ends, y, n, k, SHARED: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr):
    """y[slot] = w[expert] x[slot // SHARED] + bias[expert] for COLS outputs of the slots order[ends[expert - 1] : ends[expert]].

    The programs (column, tile, expert) share an expert's tiles of ROWS slots among them, however many it has.
    """
    col, expert = tl.program_id(0) * COLS + tl.arange(0, COLS), tl.program_id(2)
    first, end = tl.load(ends + expert - 1, mask=expert > 0, other=0), tl.load(ends + expert)
    matrix = w + (expert.to(tl.int64) * n + col)[None, :] * k
    for at in range(first + tl.program_id(1) * ROWS, end, tl.num_programs(1) * ROWS):
        place = at + tl.arange(0, ROWS)
        slot = tl.load(order + place, mask=place < end, other=0)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for start in range(0, k, DEPTH):
            depth = start + tl.arange(0, DEPTH)
            row = x + (slot // SHARED)[:, None] * k + depth[None, :]
            rows = tl.load(row, mask=(place < end)[:, None] & (depth < k)[None, :], other=0.0)
            tile = tl.load(matrix + depth[:, None], mask=(col < n)[None, :] & (depth < k)[:, None], other=0.0)
            sums = tl.dot(rows, tile, sums)
        sums += tl.load(bias + expert * n + col, mask=col < n, other=0.0).to(tl.float32)[None, :]
        tl.store(y + slot[:, None] * n + col[None, :], sums.to(y.dtype.element_ty), mask=(place < end)[:, None] & (col < n)[None, :])


def multiply(x, w, bias, order, ends):
    """[slots, n] in the order of slots; x has a row a slot, or one for `SHARED` slots."""
    (experts, n, k), y = w.shape, x.new_empty(len(order), w.shape[1])
    room = 2 * len(order) // experts  # most experts' slots fit
    rows = min(ROWS[1], max(ROWS[0], triton.next_power_of_2(room)))
    sizes = {"SHARED": len(order) // len(x), "ROWS": rows, "COLS": COLS, "DEPTH": DEPTH}
    stages = stages_of((rows + COLS) * DEPTH * x.element_size(), x.device)
    grid = triton.cdiv(n, COLS), max(1, triton.cdiv(room, rows)), experts
    grouped_product[grid](x, w, bias, order, ends, y, n, k, **sizes, num_warps=8, num_stages=stages)
    return y


def prepare(x, chosen, shares, gate_up, gate_up_bias, down, down_bias, experts, top, hidden):
    config, numbers = config_of(experts, top, hidden), torch.arange(experts, device=x.device)

    def step():
        order, _, ends = by_expert(chosen, numbers)
        inner = activated(config, multiply(x, gate_up, gate_up_bias, order, ends))
        answers = multiply(inner, down, down_bias, order, ends)
        return torch.bmm(shares[:, None], answers.view(*chosen.shape, -1)).squeeze(1)

    return step
