"""A decode step through layers of gpt-oss-20b, one token a sequence: a side says how it attends and how it runs the experts."""

import dataclasses
import itertools

from common.block_formats import mxfp4_restored
from common.models.config import Experts, gpt_oss_20b
from common.models.decoder import attention, shapes
from common.models.layers import activated, linear, rms_norm


def config_of(layers, hidden, heads, experts):
    """The published layer at the published sizes, 2880, 64 and 32, or a smaller one for a CPU."""
    sizes = {"hidden": hidden, "intermediate": hidden, "heads": heads, "kv_heads": heads // 8, "experts": Experts(experts, top=4)}
    return dataclasses.replace(gpt_oss_20b(layers), **sizes)


def weights_of(rand, config):
    """A dict a layer, without its experts."""
    named = {name.removeprefix("layers.0."): shape for name, shape in shapes(config).items() if name.startswith("layers.0.")}

    def weight(name, shape):
        std = shape[1] ** -0.5 if len(shape) > 1 else 0.5
        return rand.normal(*shape, dtype=config.dtype, mean=float(name.endswith("norm")), std=std)

    return [{name: weight(name, shape) for name, shape in named.items() if "experts" not in name} for _ in range(config.layers)]


def decode(config, x, weights, turn, chosen, attend, mixture):
    """Hidden states behind all layers, [sequences, hidden], from those before, x.

    `weights` are a dict a layer. `turn` is the rotation at the tokens' position; `chosen` [layers, sequences, top] are experts.
    attend(layer, q, k, v) is a `common.models.decoder.Attend`; mixture(layer, x, chosen, shares) gives [sequences, hidden].
    """
    weights = {f"layers.{layer}.{name}": weight for layer, each in enumerate(weights) for name, weight in each.items()}
    for layer in range(config.layers):
        name = f"layers.{layer}"
        normed = rms_norm(x, weights[f"{name}.attention_norm"], config.norm_eps)
        x = x + attention(weights, config, layer, normed[:, None], turn, attend)[:, 0]
        normed = rms_norm(x, weights[f"{name}.feed_forward_norm"], config.norm_eps)
        shares = linear(weights, f"{name}.router", normed).gather(1, chosen[layer]).softmax(-1)
        x = x + mixture(layer, normed, chosen[layer], shares)
    return x


def one_by_one(config, packed):
    """The experts in plain arithmetic: a matrix is unpacked for each token and expert."""

    def mixture(layer, h, chosen, shares):
        out = h.new_zeros(h.shape)
        for token, slot in itertools.product(range(len(h)), range(chosen.shape[1])):
            expert, part = chosen[token, slot], h[token]
            for name, (blocks, scales, biases) in packed[layer].items():
                part = mxfp4_restored(blocks[expert], scales[expert], h.dtype) @ part + biases[expert]
                part = activated(config, part) if name == "gate_up" else part
            out[token] += shares[token, slot] * part
        return out

    return mixture
