"""The MLP of the lab, and what both sides do with one batch on the device."""

import torch


def score(batch, weights, head, out):
    """Scores of `batch`, uint8 [rows, width] on the device, into `out` [rows, classes] in bf16."""
    x = batch.to(head.dtype).sub_(127.5).div_(74)
    for w in weights:
        x = torch.relu_(x @ w)
    torch.mm(x, head, out=out)
