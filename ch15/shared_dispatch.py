"""A layer of experts whose weights lie on several ranks: tokens travel to the ranks of their experts, and answers travel back.

Slots are what choices name: slot s lies on rank s // (slots of a rank), and holds one expert's weights.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Plan:
    """Where a batch's choices go: sorted by slot on the way out, sorted by local slot once they have arrived.

    order      positions of the choices, tokens x top, by slot
    sent       how many choices go to each rank, and received how many come from each: the host knows both
    slot       the local slot of each row that arrives, and by_slot the positions of these rows by slot
    ends       behind the last row of each local slot, int32, on the device
    load       `sent`, on the device
    """

    order: torch.Tensor
    sent: list[int]
    received: list[int]
    slot: torch.Tensor
    by_slot: torch.Tensor
    ends: torch.Tensor
    load: torch.Tensor


def plan(slots, local, group):
    """The plan for choices of `slots`, tokens x top, where a rank of `group` has `local` slots. The host waits for the counts."""
    ranks = group.size()
    slot, order = slots.flatten().sort(stable=True)
    marks = torch.arange(ranks * local + 1, device=slots.device)
    counts = torch.searchsorted(slot, marks).diff()
    theirs, sent, received = counts, [len(slot)], [len(slot)]  # ranks x local: each rank's choices of each of this rank's slots
    if ranks > 1:
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts, group=group)
        sent, received = torch.stack((counts, theirs)).view(2, ranks, local).sum(dim=2).tolist()
    of_row = torch.arange(local, device=slots.device).repeat(ranks).repeat_interleave(theirs, output_size=sum(received))
    ends = theirs.view(ranks, local).sum(dim=0).cumsum(dim=0, dtype=torch.int32)
    return Plan(order, sent, received, of_row, of_row.argsort(stable=True), ends, counts.view(ranks, local).sum(dim=1))


def all_to_all(rows, sent, received, group, **more):
    """The rows that ranks send this one, and the work to wait for with `async_op=True`. `sent` and `received` count rows by rank."""
    arrived = rows.new_empty(sum(received), rows.shape[1])
    return arrived, dist.all_to_all_single(arrived, rows, received, sent, group=group, **more)


def travel(rows, sent, received, group):
    """The rows that ranks send this one, once they are there. A group of one rank sends nothing."""
    return rows if group.size() == 1 else all_to_all(rows, sent, received, group)[0]
