"""Attention in Triton: tiles by tensor descriptors; the compiler pipelines the loads, or gives them to warps of their own."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS, COLS = 128, 128


@triton.jit
def attend(from_q, from_k, from_v, y, queries, keys, unit, ROWS: tl.constexpr, COLS: tl.constexpr, DIM: tl.constexpr, ROLES: tl.constexpr):
    """ROWS queries of a head. `unit` is log2(e) / sqrt(DIM), so that shares are powers of 2."""
    head, row = tl.program_id(1), tl.program_id(0) * ROWS
    q = from_q.load([head * queries + row, 0])
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, DIM), tl.float32)
    for at in tl.range(0, keys, COLS, warp_specialize=ROLES):
        scores = tl.dot(q, from_k.load([head * keys + at, 0]).T) * unit
        scores = tl.where((at + tl.arange(0, COLS) < keys)[None, :], scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1))
        shares = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(shares, 1)
        sums = tl.dot(shares.to(tl.bfloat16), from_v.load([head * keys + at, 0]), sums * shrink[:, None])
        top = new
    rows, cols = row + tl.arange(0, ROWS), tl.arange(0, DIM)
    to = y + (head.to(tl.int64) * queries + rows)[:, None] * DIM + cols[None, :]
    tl.store(to, (sums / total[:, None]).to(tl.bfloat16), mask=(rows < queries)[:, None])


def attention(q, k, v, roles, warps=8):
    """A step for q, k and v, [heads, tokens, 128]; with `roles`, warps specialize."""
    (heads, queries, dim), keys = q.shape, k.shape[1]
    y = torch.empty_like(q)
    maps = [TensorDescriptor.from_tensor(x.flatten(0, 1), [rows, dim]) for x, rows in ((q, ROWS), (k, COLS), (v, COLS))]
    unit = 1.4426950408889634 * dim**-0.5

    def step():
        grid = (triton.cdiv(queries, ROWS), heads)
        attend[grid](*maps, y, queries, keys, unit, ROWS=ROWS, COLS=COLS, DIM=dim, ROLES=roles, num_warps=warps, num_stages=2)
        return y

    return step
