"""A decoding step's layer of experts on several ranks, of which each has few tokens of its own. No token is dropped.

Weights arrive in shards, experts / ranks of the experts for each rank, as from a sharded checkpoint.
"""

import torch
from shared_shards import BF16, answered, draw

from common import Metric, Spec, Workload


def metrics(chosen, experts):
    """Of the last batch of this rank: the variance of its experts' tokens."""
    counts = torch.bincount(chosen.flatten(), minlength=experts).double()
    return {"load_variance": Metric(counts.var(correction=0).item(), "tokens^2", "lower")}


def work(ranks, tokens, experts, top, hidden, ffn):
    """The least is the weights that each rank of all holds."""
    return {"dram_read": 6 * hidden * ffn * experts / ranks, "dram_write": 2 * tokens * hidden}


WORKLOAD = Workload(
    inputs=draw,
    outputs=lambda tokens, hidden, **_: {"y": Spec((tokens, hidden), BF16)},
    reference=answered,
    ranks=(2, 4, 8),
    time_at={"tokens": 128, "experts": 128, "top": 4, "hidden": 2880, "ffn": 2880},  # gpt-oss-120b's, 128 sequences a rank
    check_at=(
        {"tokens": 2, "experts": 8, "top": 2, "hidden": 64, "ffn": 32},  # experts without a token
        {"tokens": 65, "experts": 16, "top": 1, "hidden": 64, "ffn": 96},
        {"tokens": 70, "experts": 8, "top": 4, "hidden": 128, "ffn": 64},
    ),
    work=work,
    rtol=0.02,
    atol=0.03,
    constants=("up", "down"),
    metrics=metrics,
)
