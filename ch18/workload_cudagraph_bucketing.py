"""Decode steps of nanochat while requests come and go: step i decodes one token for each of the first `sizes[i]` slots of a static cache.

The weights are random, in float32 so that answers can be held to a narrow tolerance. The last position of the cache is no request's:
padding may write there. Tokens are given, not sampled, so that the answers of a step do not hang on a rounding in the one before.
"""

import torch
from shared_batch_sizes import config_of, positions_of, sizes_of
from shared_decode_step import plain_decode

from common import Spec, Workload
from common.models.decoder import shapes


def inputs(rand, layers, steps, slots, capacity, vocabulary):
    config = config_of(layers, vocabulary)
    cache = (config.layers, slots, capacity, config.kv_heads, config.head_dim)
    tokens = rand.integers(steps, slots, low=0, high=config.vocabulary)
    return {
        "config": config,
        "weights": {name: rand.normal(*shape, std=shape[-1] ** -0.5) for name, shape in shapes(config).items()},
        "keys": rand.normal(*cache),
        "values": rand.normal(*cache),
        "tokens": tokens,
        "positions": torch.tensor(positions_of(steps, slots, capacity), device=tokens.device),
        "sizes": sizes_of(steps, slots),
    }


def reference(weights, config, keys, values, tokens, positions, sizes):
    answers = []
    for ids, at, size in zip(tokens, positions.tolist(), sizes, strict=True):
        answers += [plain_decode(weights, config, keys[:, i], values[:, i], ids[i], at[i]) for i in range(size)]
    return torch.stack(answers)


def work(layers, steps, slots, capacity, vocabulary):
    config = config_of(layers, vocabulary)
    weights = sum(torch.Size(shape).numel() for name, shape in shapes(config).items() if name != "embedding")
    return {"fp32": 2 * weights * sum(sizes_of(steps, slots)), "dram_read": 4 * weights * steps, "graph_launch": steps}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda steps, slots, vocabulary, **_: {"logits": Spec((sum(sizes_of(steps, slots)), vocabulary), torch.float32)},
    reference=reference,
    time_at={"layers": 12, "steps": 8, "slots": 64, "capacity": 512, "vocabulary": 65536},
    check_at=(
        {"layers": 2, "steps": 1, "slots": 1, "capacity": 8, "vocabulary": 100},
        {"layers": 2, "steps": 4, "slots": 6, "capacity": 24, "vocabulary": 100},
        {"layers": 2, "steps": 1, "slots": 40, "capacity": 24, "vocabulary": 64},
    ),
    constants=("weights",),
    in_place=("keys", "values"),
    work=work,
    clock="launch",
    rtol=1e-4,  # sums of up to 3072 float32 terms, and 12 layers carry that on in the residual stream
    atol=1e-4,
)
