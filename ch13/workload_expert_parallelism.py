"""A layer of experts behind its router: each token goes to `top` gated networks, and what they answer is added, weighted by its gates.

`chosen` are the numbers of a token's experts, all different, and `gates` their weights, which sum to 1. No token is dropped.
"""
# traffic: kernels hand activations on through DRAM: 16 * ffn + 12 * hidden bytes for a token and expert

import torch
import torch.nn.functional as F

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, tokens, experts, top, hidden, ffn):
    """Scores of experts are independent, so some experts get more tokens than others, and at few tokens some get none."""
    scores, chosen = rand.normal(tokens, experts).topk(top)
    return {
        "x": rand.normal(tokens, hidden, dtype=BF16),
        "chosen": rand.place(chosen, "device"),
        "gates": rand.place(scores.softmax(dim=1).to(BF16), "device"),
        "up": rand.normal(experts, 2 * ffn, hidden, dtype=BF16, std=hidden**-0.5),
        "down": rand.normal(experts, hidden, ffn, dtype=BF16, std=2 * ffn**-0.5),
    }


def reference(x, chosen, gates, up, down):
    """Every expert answers every token; its gate is 0 where it was not chosen."""
    y = torch.zeros_like(x)
    for expert in range(len(up)):
        gate = torch.where(chosen == expert, gates, 0.0).sum(dim=1, keepdim=True)
        opened, values = F.linear(x, up[expert]).chunk(2, dim=1)
        y += gate * F.linear(F.silu(opened) * values, down[expert])
    return y


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, experts, top, hidden, ffn: {"y": Spec((tokens, hidden), BF16)},
    reference=reference,
    time_at={"tokens": 2048, "experts": 32, "top": 4, "hidden": 2880, "ffn": 2880},  # gpt-oss-20b's, a chunk of a prefill
    cpu_at={"tokens": 128, "experts": 16, "top": 4, "hidden": 64, "ffn": 64},
    check_at=(
        {"tokens": 3, "experts": 8, "top": 2, "hidden": 64, "ffn": 32},  # experts without a token
        {"tokens": 129, "experts": 5, "top": 1, "hidden": 64, "ffn": 96},
        {"tokens": 70, "experts": 8, "top": 8, "hidden": 128, "ffn": 64},  # every expert gets every token
    ),
    work=lambda tokens, experts, top, hidden, ffn: {
        "bf16": 6 * tokens * top * hidden * ffn,
        "dram_read": 2 * (min(experts, top * tokens) * 3 * hidden * ffn + tokens * hidden),
        "dram_write": 2 * tokens * hidden,
    },
    rtol=0.02,
    atol=0.06,  # rounded at the same places on a CPU, 400 seeds of a shape: the worst element took 0.6 of this tolerance
    constants=("up", "down"),
    clock="launch",  # the baseline asks the device how many tokens an expert has
)
