"""Decode attention over paged keys and values whose sums depend on a request alone: fixed parts, fixed warps, and a merge in order."""

import torch
import triton
import triton.language as tl
from shared_paged_attend import attend
from shared_paged_decode import TILE, starts_early

SPAN = 512  # tokens of a part, whatever the batch
AT_ONCE = 16  # parts that are merged at once, whatever their number
WARPS = 2  # of each program, however long the table is


@triton.jit
def merge_in_order(parts, sums, y, count, DIM: tl.constexpr, COUNT: tl.constexpr, EARLY: tl.constexpr = False):
    """As `merge`, COUNT parts at a time from the first on: parts without a token change no bit, so `count` may be that of any batch."""
    head, lane = tl.program_id(0), tl.arange(0, DIM)
    top, total, answer = -float("inf"), 0.0, tl.zeros((DIM,), tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    for begin in range(0, count, COUNT):
        part = begin + tl.arange(0, COUNT)
        log = tl.load(sums + head * count + part, mask=part < count, other=-float("inf"))
        value = tl.load(parts + (head * count + part)[:, None] * DIM + lane[None, :], mask=(part < count)[:, None], other=0.0)
        higher = tl.maximum(top, tl.max(log, 0))
        weight, fade = tl.exp2(log - higher), tl.exp2(top - higher)
        answer = answer * fade + tl.sum(value * weight[:, None], 0)
        total = total * fade + tl.sum(weight, 0)
        top = higher
    tl.store(y + head * DIM + lane, (answer / total).to(y.dtype.element_ty))


def fixed_decoder(q, keys, values, table, lengths):
    """A step, as that of shared_paged_decode's decoder; every part is merged, even where a context has one."""
    (sequences, heads, dim), (_, page, kv_heads, _), pages = q.shape, keys.shape, table.shape[1]
    count = triton.cdiv(pages * page, SPAN)
    y = torch.empty_like(q)
    parts = torch.empty(sequences, heads, count, dim, device=q.device)
    sums = torch.empty(sequences, heads, count, device=q.device)
    unit, early = dim**-0.5 * 1.4426950408889634, starts_early(q)  # log2(e): exponentials are powers of two
    sizes = {"DIM": dim, "GROUP": heads // kv_heads, "PAGE": page, "TILE": TILE, "EARLY": early, "num_warps": WARPS, "num_stages": 3}
    joined = {"DIM": dim, "COUNT": AT_ONCE, "EARLY": early, "num_warps": WARPS}

    def step():  # `merge_in_order` starts before `attend` ends, as shared_paged_decode's merge does
        attend[sequences, kv_heads, count](q, keys, values, table, lengths, parts, sums, SPAN, pages, unit, **sizes)
        merge_in_order[sequences * heads,](parts, sums, y, count, **joined, launch_pdl=early)
        return y

    return step
