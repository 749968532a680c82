"""Baseline: one GPU serves what all ranks send it: it reads all weights in every step."""

import torch
import torch.distributed as dist
from shared_replica import Decoding, config_of, views

from common.graph import captured


def prepare(weights, tokens, rank, ranks, sequences, steps, **model):
    config = config_of(weights.dtype, **model)
    decoding = Decoding(config, ranks * sequences, steps, tokens.device)
    mine = torch.empty(steps, sequences, config.vocabulary, dtype=config.dtype, device=tokens.device)
    asked = [torch.zeros_like(tokens) for _ in range(ranks)] if rank == 0 else None

    def decode():
        """Logits of each rank's sequences."""
        decoding.begin()
        logits = torch.stack(decoding.run(views(weights, config), torch.cat(asked, dim=1)))
        return [part.contiguous() for part in logits.split(sequences, dim=1)]

    replay = captured(decode) if rank == 0 else lambda: None

    def step():
        dist.gather(tokens, asked)
        dist.scatter(mine, replay())
        return mine

    return step
