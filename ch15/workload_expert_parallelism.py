"""A layer of experts of bounded capacity behind its router: y adds up what a token's `top` experts answer, weighted by its gates.

`chosen` are a token's experts, all different, `gates` their weights, which sum to 1. An expert takes at most `capacity_factor` times its
even share of the choices, earlier tokens first. What it drops adds nothing to y, and is counted: `kept` and `dropped` say how many
choices each expert took and turned away. With a factor of experts / top nothing can be dropped.
"""

import torch
import torch.nn.functional as F
from shared_capacity import capacity_of, queue, taken

from common import Metric, Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, tokens, experts, top, hidden, ffn, capacity_factor, skew):
    """Experts differ in popularity: the scores of an expert have a mean of its own, with a spread of `skew` between experts."""
    scores, chosen = (rand.normal(tokens, experts) + skew * rand.normal(experts)).topk(top)
    return {
        "x": rand.normal(tokens, hidden, dtype=BF16),
        "chosen": rand.place(chosen, "device"),
        "gates": rand.place(scores.softmax(dim=1).to(BF16), "device"),
        "up": rand.normal(experts, 2 * ffn, hidden, dtype=BF16, std=hidden**-0.5),
        "down": rand.normal(experts, hidden, ffn, dtype=BF16, std=2 * ffn**-0.5),
    }


def reference(x, chosen, gates, up, down, tokens, experts, top, capacity_factor):
    """Expert after expert, on the first tokens that chose it."""
    y = torch.zeros_like(x)
    limit = capacity_of(tokens, experts, top, capacity_factor)
    lengths = torch.stack([(chosen == expert).sum() for expert in range(experts)])
    for expert in range(experts):
        token, place = (part[:limit] for part in torch.where(chosen == expert))
        opened, values = F.linear(x[token], up[expert]).chunk(2, dim=1)
        y.index_add_(0, token, gates[token, place, None] * F.linear(F.silu(opened) * values, down[expert]))
    return y, *taken(lengths, limit)


def metrics(chosen, experts, tokens, top, capacity_factor):
    """The last batch's balance: its longest queue over the mean, the variance of queues, choices dropped, and every expert's tokens."""
    lengths = queue(chosen, experts)[1].double()
    kept, dropped = taken(lengths, capacity_of(tokens, experts, top, capacity_factor))
    return {
        "load_imbalance": Metric((lengths.max() / lengths.mean()).item(), "x", "lower"),
        "load_variance": Metric(lengths.var(correction=0).item(), "tokens^2", "lower"),
        "dropped_choices": Metric(dropped.sum().item(), "choices", "lower"),
        **{f"tokens_of_expert_{expert}": Metric(count, "tokens", "higher") for expert, count in enumerate(kept.tolist())},
    }


def outputs(tokens, experts, hidden, **_):
    counts = Spec((experts,), torch.int64)
    return {"y": Spec((tokens, hidden), BF16), "kept": counts, "dropped": counts}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    # Mixtral-8x7B's experts, a chunk of a prefill
    time_at={"tokens": 2048, "experts": 8, "top": 2, "hidden": 4096, "ffn": 14336, "capacity_factor": 1.25, "skew": 0.2},
    cpu_at={"tokens": 128, "experts": 8, "top": 2, "hidden": 64, "ffn": 128, "capacity_factor": 1.25, "skew": 0.2},
    check_at=(
        {"tokens": 129, "experts": 8, "top": 1, "hidden": 64, "ffn": 96, "capacity_factor": 1.0, "skew": 0.5},  # top-1 of Switch
        {"tokens": 70, "experts": 8, "top": 2, "hidden": 64, "ffn": 64, "capacity_factor": 1.25, "skew": 0.5},
        {"tokens": 3, "experts": 8, "top": 2, "hidden": 64, "ffn": 32, "capacity_factor": 4.0, "skew": 0.5},  # room for all
        {"tokens": 66, "experts": 64, "top": 4, "hidden": 64, "ffn": 64, "capacity_factor": 0.5, "skew": 1.0},
    ),
    work=lambda tokens, experts, top, hidden, ffn, capacity_factor, skew: {
        # of the choices that fit, a tenth at most is dropped at the skew that is timed
        "bf16": 0.9 * min(1.0, capacity_factor) * 6 * tokens * top * hidden * ffn,
        "dram_read": 2 * (min(experts, top * tokens) * 3 * hidden * ffn + tokens * hidden),
        "dram_write": 2 * tokens * hidden,
    },
    rtol=0.02,
    atol=0.03,
    constants=("up", "down"),
    metrics=metrics,
)
