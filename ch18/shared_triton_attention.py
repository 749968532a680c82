"""Attention in Triton: tiles by tensor descriptors; the compiler pipelines the loads, or gives them to warps of their own."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS = 128


@triton.jit
def attend(
    of_q, of_k, of_v, of_y, keys, unit, ROWS: tl.constexpr, COLS: tl.constexpr, DIM: tl.constexpr, CAUSAL: tl.constexpr, ROLES: tl.constexpr
):
    """ROWS queries of a head; of all heads the last queries, which see most keys, start first. `unit` is log2(e) / sqrt(DIM)."""
    head, row = tl.program_id(0), (tl.num_programs(1) - 1 - tl.program_id(1)) * ROWS
    rows = row + tl.arange(0, ROWS)
    q = of_q.load([head, row, 0]).reshape(ROWS, DIM)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, DIM), tl.float32)
    seen = tl.minimum(rows + 1, keys) if CAUSAL else tl.full((ROWS,), keys, tl.int32)  # how many keys a query sees
    all_see = tl.minimum(row + 1, keys) if CAUSAL else keys
    end = tl.minimum(row + ROWS, keys) if CAUSAL else keys
    for at in tl.range(0, end, COLS, warp_specialize=ROLES):
        scores = tl.dot(q, of_k.load([head, at, 0]).reshape(COLS, DIM).T)
        if at + COLS > all_see:  # the diagonal, or the end of the keys, crosses this tile
            scores = tl.where((at + tl.arange(0, COLS))[None, :] < seen[:, None], scores, float("-inf"))
        new = tl.maximum(top, tl.max(scores, 1) * unit)
        shares = tl.exp2(scores * unit - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(shares, 1)
        v = of_v.load([head, at, 0]).reshape(COLS, DIM)
        sums = tl.dot(shares.to(tl.bfloat16), v, sums * shrink[:, None])
        top = new
    of_y.store([head, row, 0], (sums / total[:, None]).to(tl.bfloat16).reshape(1, ROWS, DIM))


def attention(q, k, v, causal, roles, cols=64, warps=4, stages=2):
    """A step for q, k and v, [heads, tokens, 128]; with `roles`, warps specialize. Two programs of four warps fit into an SM of Hopper."""
    (heads, queries, dim), keys = q.shape, k.shape[1]
    y = torch.empty_like(q)
    maps = [TensorDescriptor.from_tensor(x, [1, rows, dim]) for x, rows in ((q, ROWS), (k, cols), (v, cols), (y, ROWS))]
    unit = 1.4426950408889634 * dim**-0.5
    sizes = {"ROWS": ROWS, "COLS": cols, "DIM": dim, "num_warps": warps, "num_stages": stages}

    def step():
        grid = (heads, triton.cdiv(queries, ROWS))
        attend[grid](*maps, keys, unit, CAUSAL=bool(causal), ROLES=roles, **sizes)
        return y

    return step
