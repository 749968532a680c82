"""Baseline: a view of the embedding as it is stored. A token's floats lie a row apart, each in a sector of 32 bytes of which 4 are used."""

import torch


def prepare(embedding, token, tokens, features):
    rows = embedding.T
    y = torch.empty(tokens, features, dtype=embedding.dtype, device=embedding.device)

    def step():
        return torch.index_select(rows, 0, token, out=y)

    return step
