"""Plans for a batch that is cut into tiles, with one sort, one exchange of counts and one wait of the host for all of them."""

from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Tile:
    """Where a tile's choices go: of `Plan` in shared_dispatch.py those entries that experts and `combine` read."""

    order: torch.Tensor
    sent: list[int]
    received: list[int]
    by_slot: torch.Tensor
    ends: torch.Tensor


def plan_tiles(slots, tiles, local, group):
    """A plan for each part of `slots.tensor_split(tiles)`, in a group of two ranks or more. The host waits once, for all counts.

    A choice's key is its tile and its slot, so one sort leaves each tile's choices together and by slot. So does one of rows that arrive.
    """
    ranks = group.size()
    parts = slots.tensor_split(tiles)
    keys, order = torch.cat([part.flatten() + i * ranks * local for i, part in enumerate(parts)]).sort(stable=True)
    marks = torch.arange(tiles * ranks * local + 1, device=slots.device)
    counts = torch.searchsorted(keys, marks).diff().view(tiles, ranks, local)
    mine = counts.transpose(0, 1).contiguous()  # ranks x tiles x local: a peer gets its counts of all tiles at once
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine, group=group)
    theirs = theirs.transpose(0, 1)
    sent, received = torch.stack((counts, theirs)).sum(dim=3).tolist()
    choices, rows = [part.numel() for part in parts], [sum(one) for one in received]
    key_of_row = torch.arange(tiles * local, device=slots.device).view(tiles, 1, local).expand_as(theirs)
    key_of_row = key_of_row.flatten().repeat_interleave(theirs.flatten(), output_size=sum(rows))
    orders = [part - sum(choices[:i]) for i, part in enumerate(order.split(choices))]
    by_slot = [part - sum(rows[:i]) for i, part in enumerate(key_of_row.argsort(stable=True).split(rows))]
    ends = theirs.sum(dim=1).cumsum(dim=1, dtype=torch.int32)
    return [Tile(*each) for each in zip(orders, sent, received, by_slot, ends, strict=True)]
