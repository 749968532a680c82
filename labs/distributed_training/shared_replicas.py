"""A stack of residual MLPs, trained on micro-batches: its modules, what a rank is given, and what a step must leave on it."""

import torch
import torch.nn.functional as F
from torch import nn

NAMES = ("up", "down")  # the weights of a block, each hidden x width; a rank's shard is rows of both
HIDDEN = 4  # hidden units per unit of width


def block(x, up, down):
    """The residual stream behind a block; `x` is tokens x width."""
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ up.T) @ down


class Mlp(nn.Module):
    """A block as a module, without memory of its own."""

    def __init__(self, width):
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Parameter(torch.empty(HIDDEN * width, width, device="meta")))

    def forward(self, x):
        return block(x, self.up, self.down)


def stack(layers, width):
    """All blocks: load their state by `load_state_dict(..., assign=True)`."""
    return nn.Sequential(*(Mlp(width) for _ in range(layers)))


def named(weights):
    """The weights of all blocks, as a list of dicts, by the name that the stack has for them."""
    return {f"{i}.{name}": weight for i, layer in enumerate(weights) for name, weight in layer.items()}


def loss_of(model, x, loss_scale):
    """The loss of a micro-batch; `loss_scale` is divided by their number."""
    return loss_scale * model(x).float().square().mean()


def draw(rand, rank, ranks, micro, tokens, width, layers):
    """The micro-batches of a rank and its shard of the weights, as a sharded checkpoint gives it to that rank alone."""
    mine, units = rand.of_rank(rank), HIDDEN * width

    def layer():  # as in GPT-2, what is added to the stream is divided by the root of how often that is done
        up = mine.normal(units // ranks, width, dtype=torch.bfloat16, std=width**-0.5)
        return {"up": up, "down": mine.normal(units // ranks, width, dtype=torch.bfloat16, std=(units * layers) ** -0.5)}

    return {"x": mine.normal(micro, tokens, width, dtype=torch.bfloat16), "weights": [layer() for _ in range(layers)]}


def averaged(shards, ranks, rank, micro, loss_scale):
    """What a step must leave on `rank`: its loss, and its units' gradients, the mean over all ranks; in one process, rank after rank."""
    leaves = [weight.repeat(ranks, 1) for weight in named(shards(rank)["weights"]).values()]
    for peer in range(ranks):
        for leaf, weight in zip(leaves, named(shards(peer)["weights"]).values(), strict=True):
            leaf.chunk(ranks)[peer].copy_(weight)
    for leaf in leaves:
        leaf.requires_grad_()
    losses = []
    for peer in range(ranks):
        losses.append(0)
        for batch in shards(peer)["x"].clone():
            stream = batch
            for up, down in zip(leaves[::2], leaves[1::2], strict=True):
                stream = block(stream, up, down)
            loss = loss_scale / micro * stream.square().mean()
            (loss / ranks).backward()
            losses[-1] = losses[-1] + loss.detach()
    return losses[rank], *(weight.grad.chunk(ranks)[rank] for weight in leaves)
