"""A training step of a small decoder in float32: forward, backward and AdamW, over state that lies in the tensors it is given."""

import dataclasses

import torch
from torch.nn.functional import cross_entropy

from common.models.config import Config, byte_lm
from common.models.decoder import fused_attention, hidden_states, logits, shapes

RATE, DECAY, EPSILON, BETAS = 1e-3, 1e-2, 1e-8, (0.9, 0.999)


def config_of(width: int, layers: int) -> Config:
    """byte_lm with other sizes, in float32; heads of 64, or one of all of a smaller width."""
    dim = min(width, 64)
    sizes = {"hidden": width, "layers": layers, "heads": width // dim, "kv_heads": max(width // dim // 2, 1), "head_dim": dim}
    return dataclasses.replace(byte_lm(), **sizes, intermediate=11 * width // 4, dtype=torch.float32)


def leaves_of(weights, config):
    """The model's weights by name, as leaves of autograd that share the memory of `weights`, a list in the order of `shapes`."""
    return {name: weight.detach().requires_grad_() for name, weight in zip(shapes(config), weights, strict=True)}


def loss_of(weights, config, text, attend=fused_attention):
    """The negative log-likelihood of text[:, 1:], in nats, summed over all tokens; text is int64 [sequences, tokens + 1]."""
    positions = torch.arange(text.shape[1] - 1, device=text.device)
    found = logits(weights, config, hidden_states(weights, config, text[:, :-1], positions, attend))
    return cross_entropy(found.flatten(0, 1), text[:, 1:].flatten(), reduction="sum")


def trainer(weights, averages, squares, counts, text, width, layers):
    """A function that runs one step, in place, and returns the loss before it as a float32 scalar; it never waits for the device."""
    config, loss = config_of(width, layers), torch.empty((), device=text.device)
    leaves = leaves_of(weights, config)
    adam = torch.optim.AdamW(leaves.values(), RATE, BETAS, EPSILON, DECAY, fused=True, capturable=True)
    for leaf, average, square, count in zip(leaves.values(), averages, squares, counts, strict=True):
        adam.state[leaf] = {"step": count, "exp_avg": average, "exp_avg_sq": square}

    def step():
        adam.zero_grad(set_to_none=True)
        found = loss_of(leaves, config, text)
        found.backward()
        adam.step()
        return loss.copy_(found.detach())

    return step
