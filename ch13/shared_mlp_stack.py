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
