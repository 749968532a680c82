"""Tokens of a decoding step travel to the ranks of their experts, and what comes back is added up, weighted by gates.

Only the way there and back is measured: an expert multiplies a token by a vector of its own, in place of its network. So an answer
shows which expert gave it. Each rank has tokens of its own and experts / ranks of the experts. No token is dropped.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, ranks, tokens, experts, top, hidden):
    mine = rand.of_rank(rank)
    scores, chosen = mine.normal(tokens, experts).topk(top)
    return {
        "x": mine.normal(tokens, hidden, dtype=BF16),
        "chosen": mine.place(chosen, "device"),
        "gates": mine.place(scores.softmax(dim=1).to(BF16), "device"),
        "scale": mine.normal(experts // ranks, hidden, dtype=BF16),
    }


def reference(shards, rank, ranks):
    x, chosen, gates = (shards(rank)[name].clone() for name in ("x", "chosen", "gates"))
    scales = torch.cat([shards(peer)["scale"].clone() for peer in range(ranks)])
    return (gates[:, :, None] * x[:, None] * scales[chosen]).sum(dim=1)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, hidden, **_: {"y": Spec((tokens, hidden), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"tokens": 128, "experts": 256, "top": 8, "hidden": 7168},  # DeepSeek-V3's, 128 sequences a rank
    check_at=(
        {"tokens": 1, "experts": 8, "top": 2, "hidden": 64},
        {"tokens": 65, "experts": 8, "top": 1, "hidden": 96},
        {"tokens": 70, "experts": 16, "top": 4, "hidden": 130},
    ),
    # what two ranks send each other, there and back; more ranks send more
    work=lambda tokens, experts, top, hidden: {"peer": 0.9 * 2 * 2 * tokens * top * hidden / 2},
    rtol=0.008,  # the sum is rounded to BF16, and before it every answer
    atol=0.015,
    clock="launch",
    constants=("scale",),
    ladder=("padded",),
)
