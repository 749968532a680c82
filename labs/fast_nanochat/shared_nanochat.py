"""One decode step of nanochat over cached keys and values, written once: a side says how a product is made and who launches it."""

import dataclasses

import torch
from torch.nn.functional import embedding, scaled_dot_product_attention
from torch.nn.functional import linear as product

from common.models.config import nanochat
from common.models.decoder import shapes
from common.models.layers import activated, rms_norm, rotate, rotation


def config_of(layers, hidden, vocabulary):
    """The published layers, 64 elements of width each; or other widths for a CPU."""
    heads = {"heads": hidden // 128, "kv_heads": hidden // 128}
    return dataclasses.replace(nanochat(layers), hidden=hidden, intermediate=4 * hidden, vocabulary=vocabulary, **heads)


def weights_of(rand, config):
    """`embedding`, `head`, and `blocks`, a dict a layer. What all layers together add to the stream is of its size."""
    named = {name.removeprefix("layers.0."): shape for name, shape in shapes(config).items() if name.startswith("layers.0.")}

    def weight(name, rows, cols):
        added = (2 * config.layers) ** -0.5 if name in ("o", "down") else 1.0
        return rand.normal(rows, cols, dtype=config.dtype, std=added * cols**-0.5)

    return {
        "embedding": rand.normal(config.vocabulary, config.hidden, dtype=config.dtype),
        "head": weight("head", config.vocabulary, config.hidden),
        "blocks": [{name: weight(name, *shape) for name, shape in named.items()} for _ in range(config.layers)],
    }


def caches_of(config, keys, values):
    """The side's own caches, a pair a layer, [sequences, heads, context, dim], and the rotation at the newest token's position."""
    context = keys.shape[3]
    position = torch.tensor([context - 1], device=keys.device)
    return [(k.clone(), v.clone()) for k, v in zip(keys, values, strict=True)], rotation(config, position, keys.dtype)


def merged(weights):
    """The weights with those of queries, keys and values in one matrix a layer, which `decode` multiplies by once."""
    blocks = [
        {"qkv": torch.cat([block[part] for part in "qkv"]), **{n: block[n] for n in ("o", "gate_up", "down")}}
        for block in weights["blocks"]
    ]
    return weights | {"blocks": blocks}


def decode(config, tokens, weights, caches, turn, linear=product):
    """Logits behind the tokens, [sequences, vocabulary]. Slot 0 of a cache is the newest token's: attention does not mind the order."""
    x = rms_norm(embedding(tokens, weights["embedding"]), None, config.norm_eps)
    for block, (keys, values) in zip(weights["blocks"], caches, strict=True):
        normed = rms_norm(x, None, config.norm_eps)
        parts = linear(normed, block["qkv"]).chunk(3, -1) if "qkv" in block else [linear(normed, block[part]) for part in "qkv"]
        q, k, v = (part.unflatten(-1, (config.heads, -1)) for part in parts)
        q, k = (rms_norm(rotate(part, turn), None, config.norm_eps) for part in (q, k))
        keys[:, :, 0], values[:, :, 0] = k, v
        attended = scaled_dot_product_attention(q.unsqueeze(2), keys, values)
        x = x + linear(attended.flatten(1), block["o"])
        normed = rms_norm(x, None, config.norm_eps)
        x = x + linear(activated(config, linear(normed, block["gate_up"])), block["down"])
    scores = linear(rms_norm(x, None, config.norm_eps), weights["head"])
    return torch.tanh(scores / config.logit_cap) * config.logit_cap
