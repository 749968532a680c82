"""A decode step over a cache whose tokens lose precision as they age: append a token, attend to all of them, combine the parts."""

import torch
import triton
from shared_aged_cache import append, old_of, recent_of
from shared_aged_parts import attend, combine

KEYS = 4096  # bytes of a tile's keys, in any precision
PROGRAMS = 7  # on a multiprocessor: of 6 to 20 the fastest on an H200, for e4m3
TUNED = {"num_warps": 1, "num_stages": 3}  # a warp waits for no other; keys and values of two tiles are in flight


def decoder(q, k, v, keys, values, hot, fp8=True):
    """A step: the newest `hot` tokens are in e4m3 or BF16. q: [sequences, heads, dim]; caches: [sequences, kv heads, context, dim]."""
    (heads, dim), (rows, context) = q.shape[1:], keys.flatten(0, 1).shape[:2]
    hot = min(hot, context)
    ring, ages = hot + 1, hot < context
    first = context - hot - ages  # token t lies in slot t % ring; where nothing ages, a slot stays unused
    at = ((torch.arange(ring, device=q.device) - first) % ring + first).clamp(max=context - 1)
    cache = []
    for x in (keys, values):
        kept = x.index_select(2, at)
        cache += recent_of(kept) if fp8 else (kept, None)
        cache += old_of(x.narrow(2, 0, context - hot)) if ages else (None, None)
    tile = max(16, KEYS // (dim * cache[0].element_size()))
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 132
    most = max(1, min(64, PROGRAMS * processors // rows))  # all programs run at once
    span = triton.cdiv(triton.cdiv(context, most), 2 * tile) * 2 * tile
    splits = triton.cdiv(ring, span) + triton.cdiv(context - hot, span)
    parts = torch.empty(q.shape[0], heads, splits, dim, device=q.device)
    tops, sums = torch.empty(2, q.shape[0], heads, splits, device=q.device)
    y = torch.empty_like(q)
    sizes = {"DIM": dim, "FP8": fp8, "AGES": ages}
    unit = dim**-0.5 * 1.4426950408889634  # log2(e): shares are powers of two
    group = heads * q.shape[0] // rows

    def step():
        append[rows,](k, v, *cache, context, ring, **sizes, num_warps=1)
        attend[rows, splits](q, *cache, parts, tops, sums, context, ring, span, unit, GROUP=group, TILE=tile, **sizes, **TUNED)
        combine[q.shape[0] * heads,](parts, tops, sums, y, splits, DIM=dim, SPLITS=triton.next_power_of_2(splits), num_warps=4)
        return y

    return step
