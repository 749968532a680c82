"""The kernels of latent decode attention: 64 heads attend to one cached vector per token, which is both key and value."""

import triton
import triton.language as tl


@triton.jit
def attend_latent(absorbed, q, latent, rotary, parts, sums, context, span, heads, unit, RANK: tl.constexpr, NOPE: tl.constexpr,
                  ROPE: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """ROWS heads over part program_id(2) of a sequence: a tile of latents is loaded once, multiplied for scores, then for the average.

    A query is its part in `absorbed`, and the ROPE elements behind the first NOPE in `q`. `latent` and `rotary` are tensor descriptors of
    the same memory: of a tile's latents, and of the rotary part behind them.
    """
    sequence, group, part, count = tl.program_id(0), tl.program_id(1), tl.program_id(2), tl.num_programs(2)
    head, lane, turned = group * ROWS + tl.arange(0, ROWS), tl.arange(0, RANK), NOPE + tl.arange(0, ROPE)
    inside_heads = (head < heads)[:, None]
    row = (sequence * heads + head)[:, None]
    query = tl.load(absorbed + row * RANK + lane[None, :], mask=inside_heads, other=0.0)
    query_turned = tl.load(q + row * (NOPE + ROPE) + turned[None, :], mask=inside_heads, other=0.0)
    top = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    average = tl.zeros((ROWS, RANK), tl.float32)
    share = tl.zeros((ROWS, TILE), q.dtype.element_ty)
    last = tl.minimum(part * span + span, context)
    for start in range(part * span, last, TILE):
        inside = start + tl.arange(0, TILE) < last
        kept, kept_turned = latent.load([sequence * context + start, 0]), rotary.load([sequence * context + start, RANK])
        higher, exponentials = top, tl.zeros((ROWS,), tl.float32)
        if start < last:  # always: hides from Triton that this feeds the next product, for which all warps would hold all scores
            scores = tl.dot(query, tl.trans(kept)) * unit + tl.dot(query_turned, tl.trans(kept_turned)) * unit
            scores = tl.where(inside[None, :], scores, -float("inf"))
            higher = tl.maximum(top, tl.max(scores, 1))
            exponential = tl.exp2(scores - higher[:, None])
            exponentials, share = tl.sum(exponential, 1), exponential.to(kept.dtype)
        fade = tl.exp2(top - higher)
        total = total * fade + exponentials
        average = average * fade[:, None] + tl.dot(share, kept)
        top = higher
    tl.extra.cuda.gdc_launch_dependents()  # the kernel that merges may start; it waits for this one's stores
    some = tl.where(total > 0, total, 1.0)
    at = (sequence * heads + head) * count + part
    tl.store(sums + at, top + tl.log2(some), mask=head < heads)
    tl.store(parts + at[:, None] * RANK + lane[None, :], average / some[:, None], mask=inside_heads)
