"""A decoder of Llama's kind: RMSNorm, rotary positions, causal attention and SwiGLU, its weights stacked by layer."""

import torch
from torch import nn
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu


def angles(tokens, dim, like):
    """Cosines and sines of each token's dim / 2 angles, each (tokens, 1, dim / 2), in the dtype and on the device of `like`."""
    frequency = 1e4 ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=like.device) / dim)
    angle = torch.arange(tokens, dtype=torch.float64, device=like.device)[:, None, None] * frequency
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def rotate(x, cos, sin):
    """Rotate channel i and i + dim / 2 of x, (batch, tokens, heads, dim), by their angle."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Block(nn.Module):
    """One layer; `weights` are its own."""

    def __init__(self, weights, heads):
        super().__init__()
        self.heads = heads
        for name, weight in weights.items():
            self.register_buffer(name, weight)

    def forward(self, x, cos, sin):
        """The residual stream behind the layer, of x's shape: (batch, tokens, width)."""
        batch, tokens, width = x.shape
        qkv = linear(rms_norm(x, (width,), self.norm1), self.qkv).view(batch, tokens, 3 * self.heads, -1)
        qk = rotate(qkv[:, :, : 2 * self.heads], cos, sin)
        q, k, v = (part.transpose(1, 2) for part in (*qk.chunk(2, dim=2), qkv[:, :, 2 * self.heads :]))
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, tokens, width)
        x = x + linear(mixed, self.out)
        gate, up = linear(rms_norm(x, (width,), self.norm2), self.up).chunk(2, dim=-1)
        return x + linear(silu(gate) * up, self.down)


class Decoder(nn.Module):
    """All layers, for sequences of `tokens`; `weights` maps each name to (layers, ...)."""

    def __init__(self, weights, heads, tokens):
        super().__init__()
        layers, width, _ = weights["out"].shape
        self.blocks = nn.ModuleList(Block({name: w[i] for name, w in weights.items()}, heads) for i in range(layers))
        cos, sin = angles(tokens, width // heads, weights["out"])
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, x):
        """The residual stream behind the last layer."""
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return x
