"""Replicas of a decoder get new weights while they decode, as when a trainer pushes them: from step `before` on they must be in use.

Each rank is a replica with sequences of its own, and has a part of the new weights, as a trainer's shards are spread over GPUs. Tokens
are given, so that answers do not depend on ties. The cache stays: keys of earlier tokens are the old weights'. Timed: one of the 80
layers of Llama 3 70B with Llama 2's vocabulary.
"""

import torch
from shared_replica import Decoding, config_of, elements_of, views

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, ranks, sequences, before, after, **shape):
    mine = rand.of_rank(rank)
    std = shape["hidden"] ** -0.5  # logits have a deviation of one
    part = -(-elements_of(config_of(BF16, **shape)) // ranks)
    return {
        "serving": rand.normal(ranks * part, dtype=BF16, std=std),
        "fresh": mine.normal(part, dtype=BF16, std=std),
        "tokens": mine.integers(before + after, sequences, low=0, high=shape["vocabulary"]),
    }


def reference(shards, ranks, serving, tokens, sequences, before, after, **shape):
    config = config_of(serving.dtype, **shape)
    fresh = torch.cat([shards(peer)["fresh"].clone() for peer in range(ranks)])
    decoding = Decoding(config, sequences, before + after, serving.device)
    old = decoding.run(views(serving, config), tokens[:before])
    return torch.stack(old + decoding.run(views(fresh, config), tokens[before:]))


def work(sequences, before, after, **shape):
    """What a rank of two must do: every step reads all weights, and half of the new ones come from the peer."""
    weights = 2 * elements_of(config_of(BF16, **shape))
    return {"dram_read": (before + after) * weights, "peer": weights / 2}


TINY = {"layers": 2, "hidden": 64, "inner": 96, "heads": 4, "kv_heads": 2, "vocabulary": 128}
LLAMA = {"layers": 1, "hidden": 8192, "inner": 28672, "heads": 64, "kv_heads": 8, "vocabulary": 32000}

WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, before, after, vocabulary, **_: {"logits": Spec((before + after, sequences, vocabulary), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={**LLAMA, "sequences": 8, "before": 8, "after": 2},
    check_at=(
        {**TINY, "sequences": 3, "before": 2, "after": 2},
        {**TINY, "layers": 1, "vocabulary": 88, "sequences": 1, "before": 1, "after": 3},  # no multiple of the ranks
    ),
    work=work,
    rtol=0.01,
    atol=0.06,  # logits have a deviation of one; BF16 was off by 0.037 in 10^5 of them on a CPU, and a sum over ranks rounds once more
    constants=("serving",),
    ladder=("async",),
)
