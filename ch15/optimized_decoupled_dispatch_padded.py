"""Optimized: NCCL sends a row for each choice to every rank."""
# predicts: padded 0.272 ms = 14 * 6e-6 + 2 * (2 * tokens * top * hidden / 300e9 + 30e-6) + 30e-6  (14 operations, three all-to-alls)
# proves: calls cudaStreamSynchronize == 0

import torch
import torch.distributed as dist


def exchanged(parts):
    """Part i of `parts`, ranks x ..., goes to rank i: what all ranks sent this one, in their order."""
    arrived = torch.empty_like(parts)
    dist.all_to_all_single(arrived, parts)
    return arrived


def prepare(x, chosen, gates, scale, ranks, tokens, top, hidden):
    local, choices = len(scale), torch.arange(tokens * top, device=x.device)
    everyone = torch.arange(ranks, device=x.device)[:, None]

    def step():
        rank, slot = chosen.flatten() // local, chosen.flatten() % local
        slots = exchanged(torch.where(rank == everyone, slot, 0))  # a rank that is not meant answers with any expert, which nobody reads
        rows = exchanged(x[choices // top].expand(ranks, -1, -1).contiguous())
        back = exchanged(rows * scale[slots])
        return torch.bmm(gates[:, None], back[rank, choices].view(tokens, top, hidden)).squeeze(1)

    return step
