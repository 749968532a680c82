"""Train a small decoder on bytes of Python's standard library, with tensor parallelism inside and data parallelism (FSDP2) outside.

torchrun --nproc-per-node 8 ch04/training_8xb200_pipeline.py --tp-size 2
torchrun --nproc-per-node 2 ch04/training_8xb200_pipeline.py            on a CPU too, with gloo

Checks itself: the first loss must be that of the same model in one process, and the last ones must fall below BOUND. Exit 1 if not.
"""

import argparse
import sys
import sysconfig
import time
from pathlib import Path

import torch
import torch.distributed as dist
from shared_parallelism import recommended, require_tp
from shared_torchrun import joined
from shared_tp_decoder import HEAD, Decoder, loss_of, shared_out
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from common.models.train_byte_lm import blocks_at, read_corpus

BOUND = 3.5  # nats a byte, of the last tenth's mean; guessing costs ln 256, 5.5
RATE = 3e-3


def options(description):
    """The flags that the training scripts share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tp-size", type=int, help="ranks that share out a block; default: by the number of parameters")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--context", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16, help="sequences of each data-parallel rank")
    parser.add_argument("--bound", type=float, default=BOUND, help="nats a byte below which the loss must fall")
    parser.add_argument("--corpus", type=Path, default=Path(sysconfig.get_path("stdlib")), help="a folder of Python files")
    return parser


def trained(here, dims, flags):
    """Train on the mesh `dims`, whose last axis is tp and whose others hold batches of their own; the losses, and seconds a step.

    The first loss is checked against the model in one process. Raises ValueError if they differ.
    """
    grid = init_device_mesh(here.device.type, tuple(dims.values()), mesh_dim_names=tuple(dims))
    outer = grid[tuple(dims)[:-1]]
    copies = here.ranks // dims["tp"]
    mine = here.rank // dims["tp"]  # which batches are this rank's: those of one tp group see the same
    text = read_corpus(flags.corpus).training.to(here.device)
    torch.manual_seed(0)  # all ranks begin with the same weights
    model = Decoder(flags.layers, flags.width, flags.context).to(here.device)

    def batch(step, copy):
        draw = torch.Generator().manual_seed(step * copies + copy)
        starts = torch.randint(len(text) - flags.context - 1, (flags.batch,), generator=draw).to(here.device)
        return blocks_at(text, starts, flags.context + 1)

    with torch.no_grad():
        expected = loss_of(model, batch(0, mine)).item()
    shared_out(model, grid["tp"])
    for block in (*model.blocks, model):
        fully_shard(block, mesh=outer)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses, begin = [], time.perf_counter()
    for step in range(flags.steps):
        loss = loss_of(model, batch(step, mine))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        if step == 0 and abs(loss.item() - expected) > 1e-3:
            raise ValueError(f"rank {here.rank}: found a first loss of {loss.item():.5f}; expected {expected:.5f}, that of one process")
    total = torch.stack(losses)
    dist.all_reduce(total)
    return (total / here.ranks).tolist(), (time.perf_counter() - begin) / flags.steps


def verdict(here, dims, flags, losses, seconds):
    """Rank 0 says what came out; 0 if the loss fell below the bound."""
    last = losses[-max(1, len(losses) // 10) :]
    mean = sum(last) / len(last)
    tokens = flags.batch * flags.context * here.ranks // dims["tp"]
    if here.rank == 0:
        layout = " x ".join(f"{axis} {size}" for axis, size in dims.items())
        print(f"{layout} on {here.device.type}: {tokens / seconds:.0f} tokens/s, {1e3 * seconds:.1f} ms a step, the first one included")
        print(f"loss {losses[0]:.2f} at step 1, as in one process; {mean:.2f} over the last {len(last)}; expected below {flags.bound}")
    return 0 if mean < flags.bound else 1


def tp_of(flags, ranks):
    """How many ranks share out a block. Raises ValueError if they cannot."""
    tp = flags.tp_size or recommended(12 * flags.width**2 * flags.layers, ranks).tp
    require_tp(tp, flags.width // HEAD, ranks)
    return tp


def main(arguments=None):
    """Train in the ranks that torchrun started; 0 if the checks hold."""
    flags = options(__doc__).parse_args(arguments)
    with joined() as here:
        tp = tp_of(flags, here.ranks)
        dims = {"dp": here.ranks // tp, "tp": tp}
        return verdict(here, dims, flags, *trained(here, dims, flags))


if __name__ == "__main__":
    sys.exit(main())
