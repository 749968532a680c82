"""One decode step of a small Llama-like model in eager operators; heads are 64 wide."""

import torch
from torch.nn.functional import embedding as rows_of
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

DIM = 64
EPS = 1e-5


def rotate(x, turn):
    """Rotary embedding of heads [heads, 64] by `turn`, cosines and sines [2, 32] of the position."""
    cosine, sine = turn.to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def decode(token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values):
    """Logits [1, vocabulary]; the token's keys and values are written to the last slot of the cache, [layers, kv, context, 64]."""
    x = rows_of(token, embedding)
    kv_heads = keys.shape[1]
    for layer in range(keys.shape[0]):
        heads = linear(rms_norm(x, x.shape[-1:], norms[layer, 0], EPS), qkv[layer]).view(-1, DIM)
        q, k, v = heads.split((heads.shape[0] - 2 * kv_heads, kv_heads, kv_heads))
        keys[layer, :, -1] = rotate(k, turn)
        values[layer, :, -1] = v
        q = rotate(q, turn)[None, :, None]
        mixed = scaled_dot_product_attention(q, keys[layer][None], values[layer][None], enable_gqa=True)
        x = x + linear(mixed.reshape(1, -1), o[layer])
        gate, up = linear(rms_norm(x, x.shape[-1:], norms[layer, 1], EPS), gate_up[layer]).chunk(2, dim=-1)
        x = x + linear(silu(gate) * up, down[layer])
    return linear(rms_norm(x, x.shape[-1:], last_norm, EPS), embedding)
