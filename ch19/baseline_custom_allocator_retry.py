"""Baseline: batches as large as free memory holds by arithmetic, asked for once."""

import torch
from shared_pooled import budget_of, pooled, room

SPARE = 0.1  # of the free bytes: for workspaces, and for what the arithmetic does not see


def largest(free, tokens, width):
    """How many documents fit into `free` bytes. Two matrices of scores lie in memory at once, then one of them and the answers."""
    each = 4 * tokens * (tokens + max(tokens, width))
    return max(int((1 - SPARE) * free / each), 1)


def prepare(x, megabytes):
    _, tokens, width = x.shape
    y = torch.empty(x.shape[0], width, dtype=x.dtype, device=x.device)
    with budget_of(megabytes, x.device):
        batch = largest(room(megabytes, x.device), tokens, width)

    def step():
        with budget_of(megabytes, x.device):
            for documents, out in zip(x.split(batch), y.split(batch), strict=True):
                out.copy_(pooled(documents))
        return y

    return step
