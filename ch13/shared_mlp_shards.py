"""The data of the pairs of several ranks, and what a step on it must leave on a rank: what their workloads share."""

import torch
from shared_mlp_stack import HIDDEN, block, named


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
