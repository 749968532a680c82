"""What a rank does with tokens that were sent to its experts, and the whole layer of experts that lie on several ranks."""

import torch
import torch.nn.functional as F
from shared_dispatch import plan, travel


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
    return torch.bmm(gates[:, None], answers.view(*gates.shape, returned.shape[1])).squeeze(1)


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
