"""A decoder serves sequences that come in at every rank: each rank must answer its own, and any rank may compute for any other.

Tokens are given, so that answers do not depend on ties. Timed: one of the 80 layers of Llama 3 70B with Llama 2's vocabulary.
"""

import torch
from shared_replica import Decoding, config_of, elements_of, views

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, sequences, steps, **model):
    config = config_of(BF16, **model)
    return {
        "weights": rand.normal(elements_of(config), dtype=BF16, std=config.hidden**-0.5),  # logits have a deviation of one
        "tokens": rand.of_rank(rank).integers(steps, sequences, low=0, high=config.vocabulary),
    }


def reference(weights, tokens, sequences, steps, **model):
    config = config_of(weights.dtype, **model)
    return torch.stack(Decoding(config, sequences, steps, tokens.device).run(views(weights, config), tokens))


def work(ranks, steps, **model):
    """What a rank must read: its part of the weights in each step, at 2 bytes each."""
    return {"dram_read": steps * 2 * elements_of(config_of(BF16, **model)) / ranks}


TINY = {"layers": 2, "hidden": 128, "inner": 192, "heads": 8, "kv_heads": 8, "vocabulary": 128}
LLAMA = {"layers": 1, "hidden": 8192, "inner": 28672, "heads": 64, "kv_heads": 8, "vocabulary": 32000}

WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, steps, vocabulary, **_: {"logits": Spec((steps, sequences, vocabulary), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={**LLAMA, "sequences": 4, "steps": 4},
    check_at=(
        {**TINY, "sequences": 3, "steps": 3},
        {**TINY, "layers": 1, "heads": 16, "inner": 96, "sequences": 1, "steps": 5},
    ),
    work=work,
    rtol=0.01,
    atol=0.06,  # logits have a deviation of one; BF16 was off by 0.037 in 10^5 of them on a CPU, and a sum over ranks rounds once more
    constants=("weights",),
)
