"""Weights of layers of Llama-2-7B's form, without an embedding or a head."""

import torch

from common.models.config import Config

BF16 = torch.bfloat16


def config_of(layers, hidden, heads, ffn):
    """As many key heads as query heads; no embedding and no head are used."""
    return Config(
        vocabulary=2,
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate=ffn,
        learned_norms=False,
    )


def draw(rand, layers, hidden, ffn):
    """Weights, a dict a layer. Each layer adds about as much as it gets."""
    shapes = {"q": (hidden, hidden), "k": (hidden, hidden), "v": (hidden, hidden), "o": (hidden, hidden)}
    shapes |= {"gate_up": (2 * ffn, hidden), "down": (hidden, ffn)}
    return [{name: rand.normal(*shape, dtype=BF16, std=shape[1] ** -0.5) for name, shape in shapes.items()} for _ in range(layers)]
