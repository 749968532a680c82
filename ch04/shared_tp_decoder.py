"""A small decoder of bytes, and the plan by which ranks share out its heads and hidden units (Megatron's, arXiv:1909.08053)."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

BYTES = 256
HEAD = 32  # elements of a head


class Block(nn.Module):
    """Causal attention, then an MLP of four times the width; x is batch x tokens x width."""

    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        normed = F.layer_norm(x, x.shape[-1:])
        q, k, v = (of(normed).unflatten(-1, (-1, HEAD)).transpose(1, 2) for of in (self.q, self.k, self.v))  # of this rank's heads
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(F.layer_norm(x, x.shape[-1:]))))


class Decoder(nn.Module):
    """Logits of the next byte, batch x tokens x BYTES."""

    def __init__(self, layers, width, context):
        super().__init__()
        self.embedding, self.position = nn.Embedding(BYTES, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, BYTES, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(F.layer_norm(x, x.shape[-1:]))


def loss_of(model, batch):
    """Mean nats a byte of `batch`, sequences of one byte more than the model sees."""
    return F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def shared_out(model, tp):
    """The model with each block's products split over the ranks of the 1-D mesh `tp`."""
    inward = dict.fromkeys(("q", "k", "v", "up"), ColwiseParallel())
    for block in model.blocks:
        parallelize_module(block, tp, inward | dict.fromkeys(("o", "down"), RowwiseParallel()))
    return model
