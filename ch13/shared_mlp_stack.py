"""A stack of residual MLPs, of which ranks share out the hidden units: a shard is the same rows of both weights, hidden x width.

Hidden units are added up in the end, so it does not matter which of them share a rank.
"""

import torch
import torch.nn.functional as F
from torch import nn

NAMES = ("up", "down")  # the weights of a block
HIDDEN = 4  # hidden units per unit of width


def block(x, up, down):
    """The residual stream behind a block; `x` is tokens x width."""
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ up.T) @ down


class Mlp(nn.Module):
    """A block as a module, of `hidden` units."""

    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Parameter(torch.empty(hidden, width)), nn.Parameter(torch.empty(hidden, width))

    def forward(self, x):
        return block(x, self.up, self.down)


def stack(layers, width, hidden, kind=Mlp, **more):
    """Blocks of `kind` without memory of their own: load their state by `load_state_dict(..., assign=True)`."""
    with torch.device("meta"):
        return nn.Sequential(*(kind(width, hidden, **more) for _ in range(layers)))


def named(weights):
    """The weights of all blocks, as a list of dicts, by the name that the stack has for them."""
    return {f"{i}.{name}": weight for i, layer in enumerate(weights) for name, weight in layer.items()}


def draw(rand, rank, ranks, tokens, width, layers, dtype):
    """The tokens of a rank and its shard of the weights, as a sharded checkpoint gives it to that rank alone."""
    mine = rand.of_rank(rank)
    units = HIDDEN * width // ranks

    def layer():  # as in GPT-2, what is added to the stream is divided by the root of how often that is done
        up = mine.normal(units, width, dtype=dtype, std=width**-0.5)
        return {"up": up, "down": mine.normal(units, width, dtype=dtype, std=(HIDDEN * width * layers) ** -0.5)}

    return {"x": mine.normal(tokens, width, dtype=dtype), "weights": [layer() for _ in range(layers)]}


def averaged(shards, ranks, rank, loss_scale):
    """What a step must leave on `rank`: its loss, and its units' gradients, the mean over all ranks; in one process, rank after rank."""
    copies = [[w.clone() for w in named(shards(peer)["weights"]).values()] for peer in range(ranks)]
    leaves = [torch.cat(parts).requires_grad_() for parts in zip(*copies, strict=True)]
    losses = []
    for peer in range(ranks):
        stream = shards(peer)["x"]
        for up, down in zip(leaves[::2], leaves[1::2], strict=True):
            stream = block(stream, up, down)
        loss = loss_scale * stream.square().mean()
        (loss / ranks).backward()
        losses.append(loss.detach())
    return losses[rank], *(weight.grad.chunk(ranks)[rank] for weight in leaves)
