"""A decode step of gpt-oss-120b's layers, for one token a sequence; a side says how it runs the experts."""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from common.models.decoder import attention
from common.models.layers import linear, rms_norm, rotation


def decoder(config, x, weights, chosen, keys, values, experts):
    """A step from hidden states x [sequences, hidden] to those behind all layers.

    `weights` are a dict a layer. `chosen` [layers, sequences, top] are each token's experts.
    experts(layer, x, chosen, shares) is their answer, [sequences, hidden].
    `keys` and `values` [layers, sequences, kv heads, context, dim] are those of earlier tokens.
    """
    weights = {f"layers.{layer}.{name}": weight for layer, each in enumerate(weights) for name, weight in each.items()}
    turn = rotation(config, torch.tensor([keys.shape[3]], device=x.device), x.dtype)
    caches, biases = [], []
    for layer in range(config.layers):
        seen = (config.window_of(layer) or keys.shape[3] + 1) - 1
        caches.append([pad(x[layer, :, :, -seen:], (0, 0, 2, 0)) for x in (keys, values)])  # a sink is a key of zeros; the newest token
        bias = x.new_zeros(1, config.kv_heads, config.heads // config.kv_heads, caches[-1][0].shape[2])
        bias[..., 0] = weights[f"layers.{layer}.sinks"].view(1, config.kv_heads, -1)
        biases.append(bias)

    def attend(layer, q, k, v):
        for cache, newest in zip(caches[layer], (k, v), strict=True):
            cache[:, :, 1] = newest[:, 0]
        grouped = q[:, 0].unflatten(1, (config.kv_heads, -1))  # the query heads of a key head, as queries
        bias = biases[layer].expand(len(q), -1, -1, -1)
        return scaled_dot_product_attention(grouped, *caches[layer], attn_mask=bias, scale=config.head_dim**-0.5).flatten(1, 2)[:, None]

    def step():
        h = x
        for layer in range(config.layers):
            name = f"layers.{layer}"
            normed = rms_norm(h, weights[f"{name}.attention_norm"], config.norm_eps)
            h = h + attention(weights, config, layer, normed[:, None], turn, attend)[:, 0]
            normed = rms_norm(h, weights[f"{name}.feed_forward_norm"], config.norm_eps)
            shares = linear(weights, f"{name}.router", normed).gather(1, chosen[layer]).softmax(-1)
            h = h + experts(layer, normed, chosen[layer], shares)
        return h

    return step
