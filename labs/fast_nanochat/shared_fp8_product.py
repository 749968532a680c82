"""Products by weights in e4m3, a scale per output channel; activations keep their precision."""

import torch

LARGEST = 448.0  # of e4m3


def quantized(weight):
    """A weight [out, in] in e4m3, and the scale of each row, [out] in float32."""
    scale = weight.abs().amax(1).float().clamp(min=1e-12) / LARGEST
    return (weight / scale[:, None]).to(torch.float8_e4m3fn), scale


def packed(weights):
    """The model's weights with all quantized but the embedding, of which a step reads one row."""
    blocks = [{name: quantized(weight) for name, weight in block.items()} for block in weights["blocks"]]
    return {"embedding": weights["embedding"], "head": quantized(weights["head"]), "blocks": blocks}


def linear(x, weight):
    """x times the transpose of a quantized weight, as a sum along its rows: a compiler makes one kernel of it, which reads e4m3."""
    values, scale = weight
    return ((x.float()[:, None] * values.float()).sum(-1) * scale).to(x.dtype)
