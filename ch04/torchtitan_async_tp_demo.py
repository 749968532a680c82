"""TorchTitan's async tensor parallelism in eager PyTorch: an MLP whose collectives run beside its products, against the plain one.

torchrun --nproc-per-node 2 ch04/torchtitan_async_tp_demo.py

Tokens are sharded between blocks (sequence parallelism). Plain: gather tokens, multiply, multiply, reduce-scatter. Async: PyTorch's
fused_all_gather_matmul and fused_matmul_reduce_scatter do both in chunks, through symmetric memory of GPUs. On a CPU the plain one is
checked alone. Exit 1 if an answer differs from that of one process. TorchTitan reaches the same operators through torch.compile.
"""

import argparse
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from shared_torchrun import joined

TOLERANCE = 0.06  # of BF16: sums of about 1 are rounded on each rank, and again wherever two are added


def plain(x, up, down):
    """This rank's tokens behind the MLP; x is tokens / ranks x width, up and down are hidden / ranks x width."""
    tokens = x.new_empty(dist.get_world_size() * x.shape[0], x.shape[1])
    dist.all_gather_into_tensor(tokens, x)
    mine = torch.empty_like(x)
    dist.reduce_scatter_tensor(mine, F.gelu(tokens @ up.T) @ down)
    return mine


def overlapped(x, up, down):
    """The same, with the collectives in chunks beside the products."""
    group = dist.group.WORLD.group_name
    _, (hidden,) = torch.ops.symm_mem.fused_all_gather_matmul(x, [up.T], gather_dim=0, group_name=group, return_A=False)
    return torch.ops.symm_mem.fused_matmul_reduce_scatter(F.gelu(hidden), down, "sum", scatter_dim=0, group_name=group)


def expected_of(shards, rank):
    """The answer of one process, in float32, from all ranks' shards."""
    x, up, down = (torch.cat(parts).float() for parts in zip(*shards, strict=True))
    return (F.gelu(x @ up.T) @ down).chunk(len(shards))[rank]


def seconds_of(block, wait, calls):
    """Mean seconds of a call, the first few left out."""
    for call in range(calls + 3):
        if call == 3:
            wait()
            begin = time.perf_counter()
        block()
    wait()
    return (time.perf_counter() - begin) / calls


def main(arguments=None):
    """Compare answers, then times; 0 if all answers are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, help="of all ranks together; default 8192 on GPUs, 64 on a CPU")
    parser.add_argument("--width", type=int, help="default 8192 on GPUs, 64 on a CPU")
    parser.add_argument("--calls", type=int, default=10)
    flags = parser.parse_args(arguments)
    with joined() as here:
        tokens, width = (given or (8192 if here.on_gpu else 64) for given in (flags.tokens, flags.width))
        if tokens % here.ranks or 4 * width % here.ranks:
            raise ValueError(f"found {tokens} tokens and a width of {width}; expected multiples of the {here.ranks} ranks")

        def shard(rank):
            draw = torch.Generator(here.device).manual_seed(rank)
            sizes = (tokens // here.ranks, 1.0), (4 * width // here.ranks, width**-0.5), (4 * width // here.ranks, (4 * width) ** -0.5)
            parts = (std * torch.randn(rows, width, generator=draw, device=here.device) for rows, std in sizes)
            return [part.to(torch.bfloat16) for part in parts]

        expected = expected_of([shard(rank) for rank in range(here.ranks)], here.rank)
        mine, wrong = shard(here.rank), 0
        for block in (plain, overlapped) if here.on_gpu else (plain,):
            off = (block(*mine).float() - expected).abs().max()
            dist.all_reduce(off, op=dist.ReduceOp.MAX)
            seconds = seconds_of(lambda block=block: block(*mine), torch.cuda.synchronize if here.on_gpu else dist.barrier, flags.calls)
            wrong += off.item() > TOLERANCE
            if here.rank == 0:
                print(f"{block.__name__}: {1e3 * seconds:.3f} ms, off by at most {off.item():.4f}; expected at most {TOLERANCE}")
        if here.rank == 0 and not here.on_gpu:
            print("overlapped: not run, as symmetric memory needs a GPU for each rank")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
