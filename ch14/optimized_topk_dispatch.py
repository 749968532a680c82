"""Optimized: one kernel reads logits once and writes weights once."""
# predicts: baseline 133 us = 17 * 4 * tokens * experts / dram_copy    (7 passes, and top-k is taken to cost 10)
# predicts: optimized 15.6 us = 2 * 4 * tokens * experts / dram_copy    (one read and one write)
# proves: launches <= 2

import torch
import triton
import triton.language as tl


@triton.jit
def route(logits, weights, counts, tokens, experts, TOP: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, WIDE)
    inside = (row < tokens)[:, None] & (col < experts)[None, :]
    at = row[:, None].to(tl.int64) * experts + col[None, :]
    value = tl.load(logits + at, mask=inside, other=-float("inf"))
    left = value
    chosen = tl.zeros((ROWS, WIDE), tl.int1)
    for _ in tl.static_range(TOP):
        best = tl.argmax(left, axis=1)[:, None] == col[None, :]
        chosen = chosen | best
        left = tl.where(best, -float("inf"), left)
    largest = tl.max(value, axis=1)[:, None]
    probs = tl.where(chosen & inside, tl.exp(value - largest), 0.0)  # the softmax's sum over all experts cancels
    tl.store(weights + at, probs / tl.sum(probs, axis=1)[:, None], mask=inside)
    tl.atomic_add(counts + col, tl.sum((chosen & inside).to(tl.int64), axis=0), mask=col < experts)


def prepare(logits, tokens, experts, top):
    weights = torch.empty_like(logits)
    counts = torch.empty(experts, dtype=torch.int64, device=logits.device)
    rows = 32  # with 8 warps the fastest of 12 ways tried on an H100
    grid = (triton.cdiv(tokens, rows),)

    def step():
        counts.zero_()
        route[grid](logits, weights, counts, tokens, experts, TOP=top, ROWS=rows, WIDE=triton.next_power_of_2(experts), num_warps=8)
        return weights, counts

    return step
