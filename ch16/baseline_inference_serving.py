"""Baseline: one GPU serves what all ranks send it: it reads all weights in every step."""

import torch
import torch.distributed as dist
from shared_replica import Decoding, config_of, views


def prepare(weights, tokens, rank, ranks, sequences, steps, **model):
    config = config_of(weights.dtype, **model)
    decoding = Decoding(config, ranks * sequences, steps, tokens.device)
    mine = torch.empty(steps, sequences, config.vocabulary, dtype=config.dtype, device=tokens.device)
    asked = [torch.empty_like(tokens) for _ in range(ranks)]

    def step():
        if rank:
            dist.gather(tokens)
            dist.scatter(mine)
            return mine
        dist.gather(tokens, asked)
        decoding.begin()
        logits = torch.stack(decoding.run(views(weights, config), torch.cat(asked, dim=1)))
        dist.scatter(mine, [part.contiguous() for part in logits.split(sequences, dim=1)])
        return mine

    return step
