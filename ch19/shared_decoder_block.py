"""A decoder block as Llama-2-7B has it, whose seven linear layers are given by `linear`: causal attention, then a SwiGLU network."""

import torch
import torch.nn.functional as F

NAMES = ("q", "k", "v", "o", "gate", "up", "down")  # the weights of a block, each [out, in]


def sizes(width, wide):
    """Each weight's shape, by name; `wide` is the width between the products of the feed-forward."""
    square = dict.fromkeys(("q", "k", "v", "o"), (width, width))
    return square | {"gate": (wide, width), "up": (wide, width), "down": (width, wide)}


def block(x, weights, heads, linear, attend=F.scaled_dot_product_attention):
    """The residual stream behind a block; `x` is [sequences, tokens, width], `weights` in the order of NAMES."""
    wq, wk, wv, wo, gate, up, down = weights
    normed = F.rms_norm(x, x.shape[-1:])
    q, k, v = (linear(normed, w).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (wq, wk, wv))
    x = x + linear(attend(q, k, v, is_causal=True).transpose(1, 2).flatten(2), wo)
    normed = F.rms_norm(x, x.shape[-1:])
    return x + linear(F.silu(linear(normed, gate)) * linear(normed, up), down)


def leaves_of(weights):
    """The weights of each block as tensors that autograd gives gradients of; they share the memory of `weights`."""
    return [tuple(layer[name].detach().requires_grad_() for name in NAMES) for layer in weights]


def gradients(x, leaves, heads, loss_scale, linear):
    """Forward and backward of all blocks: the loss, and the gradient of every weight."""
    for layer in leaves:
        x = block(x, layer, heads, linear)
    loss = loss_scale * x.float().square().mean()
    return loss.detach(), *torch.autograd.grad(loss, [w for layer in leaves for w in layer])
