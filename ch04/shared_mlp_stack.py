"""A stack of residual MLPs that every rank has whole, its inputs, and the gradients that data-parallel training must leave on each rank."""

import torch.nn.functional as F
from torch import nn

NAMES = ("up", "down")  # the weights of a block, each hidden x width
HIDDEN = 4  # hidden units per unit of width


def block(x, up, down):
    """The residual stream behind a block; `x` is tokens x width."""
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ up.T) @ down


class Mlp(nn.Module):
    """A block as a module that holds the given weights."""

    def __init__(self, up, down):
        super().__init__()
        self.up, self.down = nn.Parameter(up), nn.Parameter(down)

    def forward(self, x):
        return block(x, self.up, self.down)


def stack(weights):
    """A module of all blocks; `weights` is a list of dicts with NAMES."""
    return nn.Sequential(*(Mlp(layer["up"], layer["down"]) for layer in weights))


def draw(rand, rank, tokens, width, layers, dtype):
    """The tokens of a rank, and the weights, which are the same on all."""
    units = HIDDEN * width

    def layer():  # as in GPT-2: what adds to the residual stream is scaled by 1 / sqrt(number of additions)
        up = rand.normal(units, width, dtype=dtype, std=width**-0.5)
        return {"up": up, "down": rand.normal(units, width, dtype=dtype, std=(units * layers) ** -0.5)}

    return {"x": rand.of_rank(rank).normal(tokens, width, dtype=dtype), "weights": [layer() for _ in range(layers)]}


def averaged(shards, ranks, rank, loss_scale, weights):
    """What a step must leave on `rank`: its loss, and the gradients' mean over all ranks; in one process, rank after rank."""
    leaves = [layer[name].clone().requires_grad_() for layer in weights for name in NAMES]
    losses = []
    for peer in range(ranks):
        stream = shards(peer)["x"]
        for up, down in zip(leaves[::2], leaves[1::2], strict=True):
            stream = block(stream, up, down)
        loss = loss_scale * stream.square().mean()
        (loss / ranks).backward()
        losses.append(loss.detach())
    return losses[rank], *(weight.grad for weight in leaves)
