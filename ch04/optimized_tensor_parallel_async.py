"""Optimized: multiply the tokens in hand while others' arrive."""
# predicts: baseline 1.31 ms = tokens * width * units / (0.8 * bf16) + tokens * width / 300e9 on h100  (two GPUs; a guess: 300 GB/s)
# predicts: optimized 1.10 ms = tokens * width * units / (0.8 * bf16) + 10e-6 on h100  (two GPUs; the transfer is hidden; 10 us to start it)
# proves: overlap >= 0.5

import functools

import torch
import torch.distributed as dist


@functools.cache
def urgent_group():
    """All ranks in a group whose kernels get the next free SMs, before waiting blocks of the product. Collective when first called."""
    if dist.get_backend() != "nccl":
        return dist.group.WORLD
    return dist.new_group(backend="nccl", pg_options=dist.ProcessGroupNCCL.Options(is_high_priority_stream=True))


def prepare(x, weight, rank, ranks):
    group = urgent_group()
    behind, ahead = (rank - 1) % ranks, (rank + 1) % ranks
    arrived = [torch.empty_like(x) for _ in range(ranks - 1)]
    y = x.new_empty(ranks, len(x), len(weight))

    def step():
        held = x
        for turn in range(ranks):
            transfers = []
            if turn < ranks - 1:
                ops = [dist.P2POp(dist.isend, held, ahead, group), dist.P2POp(dist.irecv, arrived[turn], behind, group)]
                transfers = dist.batch_isend_irecv(ops)
            torch.mm(held, weight.T, out=y[(rank - turn) % ranks])
            for transfer in transfers:
                transfer.wait()
            if transfers:
                held = arrived[turn]
        return y.view(-1, len(weight))

    return step
