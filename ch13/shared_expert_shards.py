"""Residual layers of experts whose tokens are shared out evenly, and what a step on them must leave on a rank.

A rank's `order` lists its tokens by expert, as many for each, as a router that balances them has it (https://arxiv.org/abs/2103.16716).
"""

import torch
import torch.nn.functional as F
from shared_mlp_stack import HIDDEN, named


def draw(rand, rank, ranks, tokens, width, experts, layers):
    """The tokens of a rank, their order by expert in each layer, and this rank's share of the experts."""
    mine = rand.of_rank(rank)

    def layer():
        up = mine.normal(experts // ranks, HIDDEN * width, width, std=width**-0.5)
        return {"up": up, "down": mine.normal(experts // ranks, HIDDEN * width, width, std=(HIDDEN * width * layers) ** -0.5)}

    order = torch.stack([mine.normal(tokens).argsort() for _ in range(layers)])
    return {"x": mine.normal(tokens, width), "order": rand.place(order, "device"), "weights": [layer() for _ in range(layers)]}


def mlps(tokens, up, down):
    """Each expert's answer to its tokens; `tokens` is experts x tokens x width, of tensors or DTensors."""
    return F.gelu(tokens @ up.mT) @ down


def experts_block(x, order, up, down, answer=mlps):
    """The residual stream behind a layer; `answer` is asked for what the experts answer to tokens in their order."""
    sent = F.layer_norm(x, x.shape[-1:])[order].view(len(up), -1, x.shape[-1])
    return x + answer(sent, up, down).reshape(x.shape)[order.argsort()]


def averaged(shards, ranks, rank, loss_scale):
    """What a step must leave on `rank`: its loss, and its experts' gradients, the mean over all ranks; in one process, rank after rank."""
    copies = [[w.clone() for w in named(shards(peer)["weights"]).values()] for peer in range(ranks)]
    leaves = [torch.cat(parts).requires_grad_() for parts in zip(*copies, strict=True)]
    losses = []
    for peer in range(ranks):
        stream, orders = shards(peer)["x"], shards(peer)["order"]
        for order, up, down in zip(orders, leaves[::2], leaves[1::2], strict=True):
            answers = torch.empty_like(stream)
            for chosen, one_up, one_down in zip(order.view(len(up), -1), up, down, strict=True):
                answers[chosen] = F.gelu(F.layer_norm(stream[chosen], stream.shape[-1:]) @ one_up.T) @ one_down
            stream = stream + answers
        loss = loss_scale * stream.square().mean()
        (loss / ranks).backward()
        losses.append(loss.detach())
    return losses[rank], *(weight.grad.chunk(ranks)[rank] for weight in leaves)
