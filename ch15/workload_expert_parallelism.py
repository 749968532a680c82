"""A layer of experts of bounded capacity behind its router: y adds up what a token's `top` experts answer, weighted by its gates.

`chosen` are a token's experts, all different, `gates` their weights, which sum to 1. An expert takes at most `capacity_factor` times its
even share of the choices, earlier tokens first; `kept` and `dropped` count them. Timed: Mixtral-8x7B's experts. `work` has weights, x and
y once, 2.85 GB. Kernels hand on 1.14 GB, of top * tokens rows: 16 * ffn bytes (products 4 and 2, SiLU 4, gating 6) and 12 * hidden.
"""
# traffic: kernels hand activations on through DRAM, 16 * ffn + 12 * hidden bytes a row, and products fetch some weights or rows again

import torch
from shared_capacity import balance, capacity_of, taken
from shared_experts import swiglu

from common import Spec, Workload


def inputs(rand, tokens, experts, top, hidden, ffn, capacity_factor, skew):
    """Experts differ in popularity: the scores of an expert have a mean of its own, with a spread of `skew` between experts."""
    scores, chosen = (rand.normal(tokens, experts) + skew * rand.normal(experts)).topk(top)
    return {
        "x": rand.normal(tokens, hidden, dtype=torch.bfloat16),
        "chosen": rand.place(chosen, "device"),
        "gates": rand.place(scores.softmax(dim=1).to(torch.bfloat16), "device"),
        "up": rand.normal(experts, 2 * ffn, hidden, dtype=torch.bfloat16, std=hidden**-0.5),
        "down": rand.normal(experts, hidden, ffn, dtype=torch.bfloat16, std=2 * ffn**-0.5),
    }


def reference(x, chosen, gates, up, down, tokens, experts, top, capacity_factor):
    """Expert after expert, on the first tokens that chose it."""
    y, limit = torch.zeros_like(x), capacity_of(tokens, experts, top, capacity_factor)
    lengths = torch.stack([(chosen == expert).sum() for expert in range(experts)])
    for expert in range(experts):
        token, place = (part[:limit] for part in torch.where(chosen == expert))
        y.index_add_(0, token, gates[token, place, None] * swiglu(x[token], up[expert], down[expert]))
    return y, *taken(lengths, limit)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, experts, hidden, **_: (
        {"y": Spec((tokens, hidden), torch.bfloat16)} | {name: Spec((experts,), torch.int64) for name in ("kept", "dropped")}
    ),
    reference=reference,
    time_at={"tokens": 2048, "experts": 8, "top": 2, "hidden": 4096, "ffn": 14336, "capacity_factor": 1.25, "skew": 0.2},
    cpu_at={"tokens": 128, "experts": 8, "top": 2, "hidden": 64, "ffn": 128, "capacity_factor": 1.25, "skew": 0.2},
    check_at=(
        {"tokens": 129, "experts": 8, "top": 1, "hidden": 64, "ffn": 96, "capacity_factor": 1.0, "skew": 0.5},  # top-1 of Switch
        {"tokens": 3, "experts": 8, "top": 2, "hidden": 64, "ffn": 32, "capacity_factor": 4.0, "skew": 0.5},  # room for all
        {"tokens": 66, "experts": 64, "top": 4, "hidden": 64, "ffn": 64, "capacity_factor": 0.5, "skew": 1.0},
    ),
    work=lambda tokens, experts, top, hidden, ffn, capacity_factor, skew: {
        "bf16": 0.9 * min(1.0, capacity_factor) * 6 * tokens * top * hidden * ffn,  # at the timed skew a tenth at most is dropped
        "dram_read": 2 * (min(experts, top * tokens) * 3 * hidden * ffn + tokens * hidden),
        "dram_write": 2 * tokens * hidden,
    },
    rtol=0.02,
    atol=0.03,
    constants=("up", "down"),
    metrics=balance,
)
