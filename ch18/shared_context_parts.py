"""Decode attention over paged keys and values by parts of contexts, as even as can be, however much the contexts' lengths differ."""

import torch
import triton
from shared_context_attend import attend_part
from shared_merge import merge_parts
from shared_paged_decode import sm_count, starts_early

TILE = 32  # tokens that a program multiplies at once, with one warp; loads of more tiles are in flight
PER_SM = 3  # programs for each SM, where sequences are few: on an H200 more gained nothing at 8 to 64 k tokens of equal lengths


def plan_of(lengths, longest, count, tile):
    """Which part is what: int32 [count, 3], a part's sequence, first token and end; and int32 [sequences + 1], a sequence's first part.

    lengths int32 [sequences], each 1 to `longest`. Parts are multiples of `tile` tokens, but for a sequence's last. The longest part is
    as short as `count` parts allow, and a sequence's parts are as long as each other; what `count` leaves over has no token.
    """
    spans = torch.arange(tile, longest + tile, tile, device=lengths.device)
    needed = ((lengths + spans[:, None] - 1) // spans[:, None]).sum(1)
    longest_part = torch.where(needed <= count, spans, spans[-1:]).min()
    own = (lengths + longest_part - 1) // longest_part
    span = (lengths + own * tile - 1) // (own * tile) * tile
    starts = torch.nn.functional.pad(own.cumsum(0), (1, 0))
    part = torch.arange(count, device=lengths.device)
    sequence = torch.searchsorted(starts[1:], part, right=True).clamp(max=len(lengths) - 1)
    begin = (part - starts[sequence]) * span[sequence]
    plan = torch.stack([sequence, begin, torch.minimum(begin + span[sequence], lengths[sequence])], 1)
    return plan.int(), starts.int()


def count_of(sequences, kv_heads, sms):
    """How many parts there may be: as fill `sms` SMs, or three for each sequence, so that long ones are split beside short."""
    return max(PER_SM * sms // kv_heads, 3 * sequences, 1)


def decoder(q, keys, values, table, lengths):
    """A step: [sequences, heads, dim] in q's dtype, of parts that fill the GPU.

    Arguments are those of shared_paged_decode's decoder, of at most 21845 sequences: the grid has room for three parts of each. The lengths
    are read here, on the GPU, and not again by a step.
    """
    (sequences, heads, dim), (_, page, kv_heads, _), pages = q.shape, keys.shape, table.shape[1]
    count = count_of(sequences, kv_heads, sm_count())
    plan, starts = plan_of(lengths, pages * page, count, TILE)
    y = torch.empty_like(q)
    parts = torch.empty(count, heads, dim, device=q.device)
    sums = torch.empty(count, heads, device=q.device)
    unit = dim**-0.5 * 1.4426950408889634  # log2(e): exponentials are powers of two
    early = starts_early(q)
    sizes = {"DIM": dim, "GROUP": heads // kv_heads, "PAGE": page, "TILE": TILE, "EARLY": early, "num_warps": 1, "num_stages": 6}
    at_once = min(triton.next_power_of_2(triton.cdiv(count, sequences)), 64)  # those of a sequence where lengths are equal, up to 64
    joined = {"DIM": dim, "COUNT": at_once, "EARLY": early, "num_warps": max(1, at_once // 32)}

    def step():  # `merge_parts` starts before `attend_part` ends; the next step waits until the parts are merged
        attend_part[kv_heads, count](q, keys, values, table, plan, parts, sums, pages, unit, **sizes)
        merge_parts[sequences, heads](parts, sums, starts, y, heads, **joined, launch_pdl=early)
        return y

    return step
