"""Logits of one decode step at batch 1, in the shape of the tree's byte-level model: 3 million weights in 4 layers, 1024 tokens cached."""

import torch
from shared_decode import DIM, decode

from common import Spec, Workload

BF16 = torch.bfloat16
SMALL = {"layers": 1, "hidden": 64, "heads": 1, "kv": 1, "inner": 88, "vocabulary": 97, "context": 5}
GROUPED = {"layers": 2, "hidden": 136, "heads": 4, "kv": 2, "inner": 200, "vocabulary": 64, "context": 130}


def inputs(rand, layers, hidden, heads, kv, inner, vocabulary, context):
    """Weights [out, in] of all layers; `turn` holds cosines and sines of the last position."""
    angles = (context - 1) * 10_000.0 ** (-torch.arange(DIM // 2) / (DIM // 2))

    def weight(*shape, added=1.0):
        return rand.normal(*shape, dtype=BF16, std=added * shape[-1] ** -0.5)

    return {
        "token": rand.integers(1, low=0, high=vocabulary, dtype=torch.int32),
        "embedding": rand.normal(vocabulary, hidden, dtype=BF16, std=hidden**-0.5),
        "qkv": weight(layers, (heads + 2 * kv) * DIM, hidden),
        "o": weight(layers, hidden, heads * DIM, added=(2 * layers) ** -0.5),
        "gate_up": weight(layers, 2 * inner, hidden),
        "down": weight(layers, hidden, inner, added=(2 * layers) ** -0.5),
        "norms": (1 + rand.normal(layers, 2, hidden, std=0.1)).to(BF16),
        "last_norm": (1 + rand.normal(hidden, std=0.1)).to(BF16),
        "turn": rand.place(torch.stack((angles.cos(), angles.sin())), "device"),
        "keys": rand.normal(layers, kv, context, DIM, dtype=BF16),
        "values": rand.normal(layers, kv, context, DIM, dtype=BF16, std=2.0),
    }


def work(layers, hidden, heads, kv, inner, vocabulary, context):
    """All weights and the cache, once."""
    weights = layers * hidden * (2 * (heads + kv) * DIM + 3 * inner) + vocabulary * hidden
    return {"dram_read": 2 * weights + 4 * layers * kv * context * DIM}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, hidden, heads, kv, inner, vocabulary, context: {"logits": Spec((1, vocabulary), BF16)},
    reference=lambda token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values: decode(
        token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys.clone(), values.clone()
    ),
    constants=("embedding", "qkv", "o", "gate_up", "down", "norms", "last_norm"),
    in_place=("keys", "values"),
    time_at={"layers": 4, "hidden": 256, "heads": 4, "kv": 2, "inner": 704, "vocabulary": 256, "context": 1024},
    check_at=(SMALL, GROUPED),
    work=work,
    clock="launch",
    rtol=2**-6,  # bfloat16 rounds what each operator of the baseline writes
    atol=0.06,  # logits are of size 1
    ladder=("without_prefetch",),
)
