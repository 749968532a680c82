"""Three exchanges of training through NVSHMEM, each checked: weights from one rank to all, gradients along a ring, tokens to their experts.

./setup.sh python -m torch.distributed.run --standalone --nproc-per-node 8 ch04/nvshmem_training_patterns.py

As many processes as there are GPUs, two or more. Ends with 1 for a wrong answer, and with 0 and a sentence where NVSHMEM is missing.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

COUNT, WIDTH = 1 << 20, 64  # values of a tensor, and values of a token


def symmetric_like(values):
    """A copy of `values` at the same place of every rank's symmetric heap, and what the ranks agreed on about it."""
    made = symmetric.empty(*values.shape, dtype=values.dtype, device="cuda").copy_(values)
    return made, symmetric.rendezvous(made, dist.group.WORLD)


def weights_from_one(rank, ranks, group):
    """Rank 0's weights come to all."""
    weights, _ = symmetric_like(torch.full((COUNT,), float(rank + 1)))
    torch.ops.symm_mem.nvshmem_broadcast(weights, 0, group)
    return bool((weights == 1).all())


def gradients_around(rank, ranks, group):
    """Each rank adds its gradients to a running sum and puts that into the next rank's memory, which waits for the put's signal."""
    sums, handle = symmetric_like(torch.full((COUNT,), float(rank)))
    signals = handle.get_signal_pad(rank)
    if rank > 0:
        torch.ops.symm_mem.nvshmem_wait_for_signal(signals, 1, rank - 1)
        sums += rank
    if rank + 1 < ranks:
        torch.ops.symm_mem.nvshmem_put_with_signal(sums, signals, 1, rank + 1)
    return bool((sums == rank * (rank + 1) / 2).all())


def tokens_to_experts(rank, ranks, group):
    """Rank r sends r + 1 tokens to every rank's expert; how many come is known on the device alone."""
    splits, _ = symmetric_like(torch.full((ranks,), rank + 1))
    tokens, _ = symmetric_like(torch.full((ranks * ranks, WIDTH), float(rank)))
    received, _ = symmetric_like(torch.full((ranks * ranks, WIDTH), -1.0))
    places, _ = symmetric_like(torch.zeros(2, ranks, dtype=torch.int64))
    dist.barrier()  # all ranks have their tokens
    torch.ops.symm_mem.all_to_all_vdev(tokens, received, splits, places, group)
    sources = torch.arange(ranks, device="cuda").repeat_interleave(torch.arange(1, ranks + 1, device="cuda"))
    return bool((received[: len(sources)] == sources[:, None]).all())


def main():
    """Each pattern on every rank; how many of them are wrong here."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    symmetric.set_backend("NVSHMEM")
    right = {p.__name__: p(rank, ranks, dist.group.WORLD.group_name) for p in (weights_from_one, gradients_around, tokens_to_experts)}
    for name, answer in right.items():
        print(f"rank {rank}: {name} is {'right' if answer else 'wrong'}", flush=True)
    return len(right) - sum(right.values())


if __name__ == "__main__":
    if not (torch.cuda.is_available() and symmetric.is_nvshmem_available()):
        sys.exit(print("skipped: needs GPUs, and PyTorch with NVSHMEM"))
    os.environ["NVSHMEM_DISABLE_NVLS"] = "1"  # no NVLink multicast: a host's GPUs may be shared
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    wrong = main()
    dist.destroy_process_group()
    sys.exit(1 if wrong else 0)
