"""A batch of tokens, each through 4 of the 32 experts of a gpt-oss-20b layer, in its published shape at the timed one.

Which experts a token takes is an input, or rounding might choose another one.
"""

import torch
from shared_moe import loop_over_experts

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, tokens, experts, top, hidden):
    scores, chosen = rand.normal(tokens, experts).topk(top)
    return {
        "x": rand.normal(tokens, hidden, dtype=BF16),
        "chosen": rand.place(chosen, "device"),
        "shares": rand.place(scores.softmax(-1).to(BF16), "device"),
        "gate_up": rand.normal(experts, 2 * hidden, hidden, dtype=BF16, std=hidden**-0.5),
        "gate_up_bias": rand.normal(experts, 2 * hidden, dtype=BF16, std=0.5),
        "down": rand.normal(experts, hidden, hidden, dtype=BF16, std=hidden**-0.5),
        "down_bias": rand.normal(experts, hidden, dtype=BF16, std=0.5),
    }


def work(tokens, experts, top, hidden):
    """Each expert that some token chose, in the mean, is read once."""
    used = experts * (1 - (1 - top / experts) ** tokens)
    return {"bf16": 6 * tokens * top * hidden * hidden, "dram_read": int(2 * used * 3 * hidden * hidden)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, experts, top, hidden: {"y": Spec((tokens, hidden), BF16)},
    reference=loop_over_experts,
    constants=("gate_up", "gate_up_bias", "down", "down_bias"),
    time_at={"tokens": 512, "experts": 32, "top": 4, "hidden": 2880},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"tokens": 1, "experts": 8, "top": 4, "hidden": 64},  # half of the experts get nothing
        {"tokens": 150, "experts": 2, "top": 2, "hidden": 96},  # every expert gets every token: more than one tile has
        {"tokens": 19, "experts": 5, "top": 3, "hidden": 200},  # no multiple of a tile
    ),
    work=work,
    rtol=0.01,
    atol=0.04,  # roundings to bf16 between products leave up to 0.025, of answers with a deviation of 0.7
)
