"""A decode step over paged keys and values in bf16 or e4m3: append a token a sequence, attend over all of them, combine the parts.

Pages are [pages, kv heads, PAGE tokens, dim]. In e4m3 each token and head has a scale of its own, [pages, kv heads, PAGE] in float32.
"""

import torch
import triton
import triton.language as tl
from shared_paged_attend import attend
from shared_paged_cache import PAGE, append

KEYS = 4096  # bytes of a tile's keys, in either precision
PROGRAMS = 8  # on a multiprocessor: of 6 to 20 the fastest on an H200, for e4m3
TUNED = {"num_warps": 1, "num_stages": 5}  # a warp waits for no other; keys and values of two tiles are in flight
ROWS = 16  # of the tile that tensor cores multiply: query heads of one key head


@triton.jit
def combine(parts, tops, sums, y, splits, DIM: tl.constexpr, SPLITS: tl.constexpr):
    """A head's answer from those over the parts of its context."""
    head, part, lane = tl.program_id(0), tl.arange(0, SPLITS), tl.arange(0, DIM)
    at, inside = head * splits + part, part < splits
    top = tl.load(tops + at, mask=inside, other=-float("inf"))
    weight = tl.exp2(top - tl.max(top, 0))
    total = tl.sum(weight * tl.load(sums + at, mask=inside, other=0.0), 0)
    value = tl.load(parts + at[:, None] * DIM + lane[None, :], mask=inside[:, None], other=0.0)
    tl.store(y + head * DIM + lane, (tl.sum(value * weight[:, None], 0) / total).to(y.dtype.element_ty))


def decoder(q, k, v, keys, values, k_scales, v_scales, table, context):
    """A step over pages that belong to the side: [sequences, heads, dim] in q's dtype. Scales are None for pages in bf16."""
    (sequences, heads, dim), kv_heads, pages = q.shape, k.shape[1], table.shape[1]
    if heads // kv_heads > ROWS:
        raise ValueError(f"found {heads // kv_heads} query heads per key head; expected at most {ROWS}")
    tile = max(16, KEYS // (dim * keys.element_size()))
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 132
    splits = max(1, min(64, triton.cdiv(context, tile), PROGRAMS * processors // (sequences * kv_heads)))  # all programs run at once
    parts = torch.empty(sequences, heads, splits, dim, device=q.device)
    tops, sums = torch.empty(2, sequences, heads, splits, device=q.device)
    y = torch.empty_like(q)
    sizes = {"DIM": dim, "PAGE": PAGE, "FP8": k_scales is not None}
    unit = dim**-0.5 * 1.4426950408889634  # log2(e): shares are powers of two

    def step():
        cache = (keys, values, k_scales, v_scales, table)
        append[sequences, kv_heads](k, v, *cache, context, pages, **sizes, num_warps=1)
        attend[sequences, kv_heads, splits](
            q, *cache, parts, tops, sums, context, pages, unit, GROUP=heads // kv_heads, TILE=tile, **sizes, **TUNED
        )
        combine[sequences * heads,](parts, tops, sums, y, splits, DIM=dim, SPLITS=triton.next_power_of_2(splits), num_warps=4)
        return y

    return step
