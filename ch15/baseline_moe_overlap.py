"""Baseline: dispatch, experts, combine, then the shared expert: one after the other."""
# allows: sync

from shared_dispatch import plan, travel
from shared_experts import combine, run_experts, swiglu
from torch.distributed import group


def prepare(x, chosen, gates, up, down, shared_up, shared_down, top):
    def step():
        batch = plan(chosen, len(up), group.WORLD)
        arrived = travel(x[batch.order // top], batch.sent, batch.received, group.WORLD)
        answers = run_experts(arrived, batch, up, down)
        returned = travel(answers, batch.received, batch.sent, group.WORLD)
        shared = swiglu(x, shared_up, shared_down)
        return shared + combine(returned, gates, batch)

    return step
