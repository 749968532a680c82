"""A layer of experts on several ranks, of which some are popular: each rank has its own tokens, and none is dropped.

Popularity stays from batch to batch: the mean scores of experts are the quantiles of a normal distribution with a spread of `skew`.
Neighbours in number are no neighbours in popularity. Both sides write into `load`, which is no output, how many choices went to each rank.
`spare` is how many more slots for experts than its share a rank may fill.
"""

import torch
from shared_shards import BF16, answered, draw

from common import Metric, Spec, Workload

STRIDE = 11  # no divisor of a number of experts below: each quantile is some expert's


def inputs(rand, rank, ranks, tokens, experts, top, hidden, ffn, skew, spare):
    quantiles = ((STRIDE * torch.arange(experts) + experts // 2) % experts + 0.5) / experts
    drawn = draw(rand, rank, ranks, tokens, experts, top, hidden, ffn, rand.place(skew * torch.special.ndtri(quantiles), "device"))
    return {**drawn, "load": rand.integers(ranks, low=0, high=1)}  # zeros


def metrics(chosen, gates, load, experts):
    """Of the last batch of this rank: the busiest rank's and the busiest expert's choices over the mean, and what training would add.

    The auxiliary loss is that of Switch Transformer, experts * sum of (share of choices * mean gate): 1 where experts are balanced.
    """
    share = torch.bincount(chosen.flatten(), minlength=experts).double() / chosen.numel()
    gate = torch.zeros(experts, dtype=torch.float64, device=gates.device).index_add_(0, chosen.flatten(), gates.flatten().double())
    return {
        "rank_imbalance": Metric((load.max() / load.double().mean()).item(), "x", "lower"),
        "expert_imbalance": Metric((experts * share.max()).item(), "x", "lower"),
        "auxiliary_loss": Metric((experts * (share * gate).sum() / len(chosen)).item(), "", "lower"),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, hidden, **_: {"y": Spec((tokens, hidden), BF16)},
    reference=answered,
    ranks=(2, 4, 8),
    # gpt-oss-20b's, a chunk of a prefill a rank
    time_at={"tokens": 8192, "experts": 32, "top": 4, "hidden": 2880, "ffn": 2880, "skew": 0.7, "spare": 2},
    check_at=(
        {"tokens": 3, "experts": 8, "top": 2, "hidden": 64, "ffn": 32, "skew": 0.7, "spare": 1},
        {"tokens": 65, "experts": 8, "top": 1, "hidden": 64, "ffn": 96, "skew": 3.0, "spare": 4},  # nearly all tokens to one expert
        {"tokens": 70, "experts": 16, "top": 4, "hidden": 128, "ffn": 64, "skew": 0.7, "spare": 0},
    ),
    # a rank's even share of the choices
    work=lambda tokens, experts, top, hidden, ffn, skew, spare: {"bf16": 0.9 * 6 * tokens * top * hidden * ffn},
    rtol=0.02,
    atol=0.03,
    constants=("up", "down"),
    in_place=("load",),
    ladder=("placement",),
    metrics=metrics,
)
