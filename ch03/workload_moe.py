"""Experts on the host, in several pods of one node: the router has chosen, each pod runs its tokens through their experts.

Two things change in the pair: how many threads a pod has, and on which CPUs they may run. The step fewer_threads changes the first alone.

Predicted: the threads are the whole gain. With as many threads as CPUs none needs another's time slice, wherever it runs.
CPU sets keep a pod's threads off other pods' CPUs when the scheduler places two threads on one. Nobody knows an equation for that.
"""

import torch
from torch.nn.functional import silu

from common import Spec, Workload


def inputs(rand, pods, tokens, hidden, width, experts, top):
    return {
        "up": rand.normal(experts, hidden, 2 * width, std=hidden**-0.5),
        "down": rand.normal(experts, width, hidden, std=width**-0.5),
        "x": rand.normal(pods, tokens, hidden),
        "chosen": rand.integers(pods, tokens, top, low=0, high=experts),
        "gates": rand.uniform(pods, tokens, top),
    }


def reference(up, down, x, chosen, gates):
    y = torch.zeros_like(x)
    for expert in range(len(up)):
        pod, token, slot = torch.nonzero(chosen == expert, as_tuple=True)
        gate, linear = (x[pod, token] @ up[expert]).chunk(2, dim=1)
        found = (silu(gate) * linear) @ down[expert]
        y.index_put_((pod, token), gates[pod, token, slot, None] * found, accumulate=True)
    return y


def work(pods, tokens, hidden, width, experts, top):
    """What goes in and out. Products and weights are more, and the pods do them on all cores, where a CPU's ceilings are those of one."""
    return {"dram_read": 4 * pods * tokens * hidden, "dram_write": 4 * pods * tokens * hidden}


SMALL = {"hidden": 36, "width": 60, "experts": 3, "top": 2}
WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda pods, tokens, hidden, width, experts, top: {"y": Spec((pods, tokens, hidden), torch.float32)},
    reference=reference,
    # Experts as wide as those of gpt-oss-20b, four of its 32.
    time_at={"pods": 4, "tokens": 16, "hidden": 2880, "width": 2880, "experts": 4, "top": 2},
    cpu_at={"pods": 2, "tokens": 16, "hidden": 720, "width": 720, "experts": 2, "top": 2},
    check_at=({"pods": 1, "tokens": 1, **SMALL}, {"pods": 3, "tokens": 5, **SMALL}),
    work=work,
    rtol=1e-4,
    atol=3e-5,
    constants=("up", "down"),
    ladder=("fewer_threads",),
    clock="host",
    place="host",
)
