"""A decode step of Llama's layers, for one token a sequence, cut at attention: the only part whose work depends on the context."""

import torch
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

from common.models.config import Rotary
from common.models.layers import frequencies, rotate

ROTARY, EPS = Rotary(theta=500_000.0), 1e-5  # Llama 3's


def weights_of(rand, layers, hidden, heads, inner):
    """A dict a layer; what all layers together add to x is of x's size. A key head serves 4 query heads."""

    def matrix(rows, cols, scale=1.0):
        return rand.normal(rows, cols, dtype=torch.bfloat16, std=scale * cols**-0.5)

    def layer(added=(2 * layers) ** -0.5):
        norms = {name: rand.uniform(hidden, dtype=torch.bfloat16, low=0.5, high=1.5) for name in ("norm1", "norm2")}
        wide = {"qkv": matrix(hidden + hidden // 2, hidden), "up": matrix(2 * inner, hidden)}
        return norms | wide | {"o": matrix(hidden, hidden, added), "down": matrix(hidden, inner, added)}

    return [layer() for _ in range(layers)]


def turn_at(position, dim, like):
    """Cosine and sine of a position, as `rotate` takes them."""
    angles = position * frequencies(ROTARY, dim, like.device)[0].to(torch.float64)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def project(x, w, turn, heads, linear):
    """Queries [sequences, key heads, 4, dim], and the newest keys and values, [sequences, key heads, dim]."""
    qkv = linear(rms_norm(x, x.shape[1:], w["norm1"], EPS), w["qkv"]).view(len(x), heads + heads // 2, -1)
    qk = rotate(qkv[:, : heads + heads // 4], turn)
    return qk[:, :heads].unflatten(1, (heads // 4, 4)), qk[:, heads:], qkv[:, heads + heads // 4 :]


def attend(q, keys, values, mask=None):
    """[sequences, hidden]: the query heads of a key head attend to its tokens like queries of their own."""
    return scaled_dot_product_attention(q, keys, values, attn_mask=mask).flatten(1)


def finish(x, attended, w, linear):
    """The rest of a layer."""
    x = x + linear(attended, w["o"])
    gate, up = linear(rms_norm(x, x.shape[1:], w["norm2"], EPS), w["up"]).chunk(2, -1)
    return x + linear(silu(gate) * up, w["down"])


def decode(x, weights, caches, turn, heads, linear):
    """[sequences, hidden] behind all layers. A cache's slot 0 is for the newest token: attention does not mind the order."""
    for w, (keys, values) in zip(weights, caches, strict=True):
        q, keys[:, :, 0], values[:, :, 0] = project(x, w, turn, heads, linear)
        x = finish(x, attend(q, keys, values), w, linear)
    return x
