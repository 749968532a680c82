"""What the decoder's workloads share: its inputs, its answer and its operations."""

import torch
from shared_decoder import Decoder

from common import Spec


def inputs(rand, layers, batch, tokens, width, heads, hidden):
    """Embedded tokens, and weights scaled as GPT-2 begins with: what all layers together add to x is of x's size."""
    added = (2 * layers) ** -0.5

    def matrix(rows, cols, scale=1.0):
        return rand.normal(layers, rows, cols, dtype=torch.bfloat16, std=scale * cols**-0.5)

    return {
        "x": rand.normal(batch, tokens, width, dtype=torch.bfloat16),
        "weights": {
            **{name: rand.uniform(layers, width, dtype=torch.bfloat16, low=0.5, high=1.5) for name in ("norm1", "norm2")},
            "qkv": matrix(3 * width, width),
            "out": matrix(width, width, added),
            "up": matrix(2 * hidden, width),
            "down": matrix(width, hidden, added),
        },
    }


def outputs(layers, batch, tokens, width, heads, hidden):
    """The residual stream behind the last layer."""
    return {"y": Spec((batch, tokens, width), torch.bfloat16)}


def reference(x, weights, heads, tokens):
    """The decoder, operator by operator."""
    return Decoder(weights, heads, tokens)(x)


def work(layers, batch, tokens, width, heads, hidden):
    """Two operations a weight and token, and causal attention's two products; every weight is read once."""
    weights = layers * width * (4 * width + 3 * hidden)
    attention = 2 * layers * batch * tokens * tokens * width
    return {"bf16": 2 * batch * tokens * weights + attention, "dram_read": 2 * weights}
