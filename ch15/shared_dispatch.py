"""A layer of experts whose weights lie on several ranks: tokens travel to the ranks of their experts, and answers travel back.

Slots are what choices name: slot s lies on rank s // (slots of a rank), and holds one expert's weights.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F


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


def swiglu(x, up, down):
    """A gated network: x is rows x hidden, up 2 ffn x hidden, down hidden x ffn."""
    opened, values = F.linear(x, up).chunk(2, dim=1)
    return F.linear(F.silu(opened) * values, down)


def run_experts(arrived, batch, up, down):
    """What the local experts answer rows that have arrived, in the order of arrival: one grouped product for all of a rank's slots."""
    if not len(arrived):
        return arrived
    opened, values = F.grouped_mm(arrived[batch.by_slot], up.mT, offs=batch.ends).chunk(2, dim=1)
    answers = F.grouped_mm(F.silu(opened) * values, down.mT, offs=batch.ends)
    back = torch.empty_like(answers)
    back[batch.by_slot] = answers
    return back


def combine(returned, gates, batch):
    """Every token's answers, tokens x hidden, weighted by its gates. `returned` are in the order in which choices were sent."""
    answers = torch.empty_like(returned)
    answers[batch.order] = returned
    return torch.bmm(gates[:, None], answers.view(*gates.shape, -1)).squeeze(1)


def expert_layer(x, slots, gates, up, down, group, load=None):
    """The whole layer: dispatch, experts, combine, one after the other. `slots` are tokens x top, `up` and `down` of the local slots.

    `load`, int64 of the group's ranks, gets how many choices went to each rank.
    """
    batch = plan(slots, len(up), group)
    if load is not None:
        load.copy_(batch.load)
    arrived = travel(x[batch.order // slots.shape[1]], batch.sent, batch.received, group)
    returned = travel(run_experts(arrived, batch, up, down), batch.received, batch.sent, group)
    return combine(returned, gates, batch)
