"""Conversations with long histories, some of which get a message of several tokens: a model of Mistral-7B's layers, and its workload."""

import torch

from common import Spec
from common.models.config import Config, Rotary
from common.models.decoder import shapes

BF16 = torch.bfloat16


def config_of(layers, width, dtype=BF16):
    """Mistral-7B-v0.2 at `width` 32, reduced in depth, and with a tied head; smaller at a smaller `width`, which counts query heads."""
    kv_heads = max(width // 4, 1)
    return Config(
        vocabulary=1000 * width,
        hidden=128 * width,
        layers=layers,
        heads=width,
        kv_heads=kv_heads,
        head_dim=128,
        intermediate=448 * width,
        rotary=Rotary(theta=1e6),
        tied=True,
        dtype=dtype,
    )


def weight(rand, name, size):
    """Weights that keep a deviation of 1 in every product, so that each matters to the logits at any width."""
    mean, std = (1.0, 0.1) if name.endswith("norm") else (0.0, size[-1] ** -0.5)
    return rand.normal(*size, dtype=BF16, mean=mean, std=std)


def inputs(rand, layers, width, conversations, context, message, turns, group, block):
    """`keys` and `values` are the histories, in blocks: [layers, conversations x blocks of one, block, kv_heads, dim], in host memory."""
    config = config_of(layers, width)
    shape = (layers, conversations * -(-context // block), block, config.kv_heads, config.head_dim)
    return {
        "weights": {name: weight(rand, name, size) for name, size in shapes(config).items()},
        "keys": rand.normal(*shape, dtype=BF16, std=1.5, where="pinned"),  # scores differ enough for single tokens to matter
        "values": rand.normal(*shape, dtype=BF16, where="pinned"),
        "messages": rand.integers(turns, conversations, message, low=0, high=config.vocabulary),
    }


def outputs(layers, width, conversations, context, message, turns, group, block):
    return {"logits": Spec((conversations, config_of(layers, width).vocabulary), BF16)}


def work(layers, width, conversations, context, message, turns, group, block):
    """Products of every token with every weight, and attention to its history."""
    weights = layers * (128 * width) ** 2 * 13  # of 4096 x 4096 each: 2.5 for attention, 10.5 for the feed-forward
    tokens = turns * conversations * message
    return {"bf16": 2 * tokens * weights + 4 * tokens * layers * context * 128 * width}
