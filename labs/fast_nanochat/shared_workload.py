"""What every pair of the lab computes: the logits of one decode step of nanochat with 20 layers, at batch 1."""

import torch
from shared_nanochat import caches_of, config_of, decode, weights_of

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, layers, hidden, vocabulary, sequences, context):
    """Tokens, weights, and the keys and values of earlier tokens, whose slot 0 is free."""
    config = config_of(layers, hidden, vocabulary)
    cache = (layers, sequences, config.heads, context, config.head_dim)
    return {
        "tokens": rand.integers(sequences, low=0, high=vocabulary),
        "weights": weights_of(rand, config),
        "keys": rand.normal(*cache, dtype=BF16, std=2.0),  # sharper attention and larger answers than unit ones give: both are to be seen
        "values": rand.normal(*cache, dtype=BF16, std=4.0),
    }


def reference(tokens, weights, keys, values, layers, hidden, vocabulary):
    """The step, operator by operator."""
    config = config_of(layers, hidden, vocabulary)
    return decode(config, tokens, weights, *caches_of(config, keys, values))


def work(stored, layers, hidden, vocabulary, sequences, context):
    """`stored` bytes a weight, and a bf16 cache; what embeds tokens is small."""
    weights = hidden * (12 * layers * hidden + vocabulary)
    return {"bf16": 2 * sequences * weights, "dram_read": stored * weights + 4 * layers * sequences * context * hidden}


def decoding(bytes_a_weight=1, **more):
    """The workload; `bytes_a_weight` is the least that a side of the pair stores, `more` are further fields."""
    return Workload(
        inputs=inputs,
        outputs=lambda layers, hidden, vocabulary, sequences, context: {"logits": Spec((sequences, vocabulary), BF16)},
        reference=reference,
        constants=("weights", "keys", "values"),
        time_at={"layers": 20, "hidden": 1280, "vocabulary": 65536, "sequences": 1, "context": 1024},
        cpu_at=None,  # a CPU has no graphs, and its kernels take a C++ compiler half a minute
        check_at=(
            {"layers": 1, "hidden": 128, "vocabulary": 97, "sequences": 1, "context": 5},
            {"layers": 2, "hidden": 256, "vocabulary": 512, "sequences": 3, "context": 40},
        ),
        work=lambda **shape: work(bytes_a_weight, **shape),
        clock="launch",
        **more,
    )
