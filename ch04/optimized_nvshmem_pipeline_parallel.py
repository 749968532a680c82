"""Optimized: a kernel puts activations into the next stage's memory."""

# needs: nvshmem
# instead: ch04:symmetric_memory
# predicts: baseline 1.17 ms = (microbatches + 1) * (16 * width**2 / (0.93 * dram_read) + 10e-6 + 30e-6) on h100  (a hand-off is guessed)
# predicts: optimized 0.990 ms = (microbatches + 1) * (16 * width**2 / (0.93 * dram_read) + 10e-6 + 10e-6) on h100  (a hand-off is guessed)
# proves: kernel hand_off
# proves: launches in nccl == 0
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from shared_nvshmem_kernels import give_back, hand_off, wait_for
from shared_pipeline_stage import run_stage

WARPS = 8
MOST_PROGRAMS = 16  # one alone does not fill a link


def prepare(x, up, down, rank, ranks):
    microbatches, tokens, width = x.shape
    programs = next(n for n in (MOST_PROGRAMS, 8, 4, 2, 1) if tokens % n == 0)
    share = tokens // programs * width * x.element_size()
    inbox, y = symmetric_empty(x.shape, x), symmetric_empty(x.shape, x)
    arrived, taken = (symmetric_empty((microbatches,), x, torch.int64).zero_() for _ in range(2))
    source = inbox if rank > 0 else x
    dist.barrier()  # nobody signals before all counters are zero
    calls = 0

    def step():
        nonlocal calls
        calls += 1
        for m in range(microbatches):
            if rank > 0:
                wait_for[(1,)](arrived[m:], calls * programs, num_warps=1)
            run_stage(source[m], up, down, y[m])
            if rank + 1 < ranks:
                hand_off[(programs,)](inbox[m], y[m], arrived[m:], taken[m:], calls - 1, share, rank + 1, num_warps=WARPS)
            if rank > 0:
                give_back[(1,)](taken[m:], calls, rank - 1, num_warps=1)
        return y

    return step


def symmetric_empty(shape, like, dtype=None):
    """Memory of NVSHMEM's heap, at the same place in the heap of every rank."""
    symmetric.set_backend("NVSHMEM")
    made = symmetric.empty(*shape, dtype=dtype or like.dtype, device=like.device)
    symmetric.rendezvous(made, dist.group.WORLD)
    return made
