"""Train a tiny decoder of DeepSeek-V3's kind, latent attention and a mixture of experts, on bytes of Python's standard library.

Experts are chosen by softmax, without V3's balancing bias and shared expert.

./setup.sh python ch13/train_deepseek_v3.py [folder]        or, data-parallel:  torchrun --nproc-per-node 2 ch13/train_deepseek_v3.py

Writes loss.svg. Ends with 1 unless the loss falls below BOUND nats a byte; guessing costs ln 256, 5.5.
"""

import os
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from shared_loss_curve import drawn
from torch.nn.functional import cross_entropy

from common.models.config import Experts, Latent, deepseek_mla
from common.models.decoder import forward, init
from common.models.train_byte_lm import blocks_at, read_corpus

STEPS, BATCH, CONTEXT, RATE = 300, 16, 64, 3e-3
BOUND = 3.0  # of the last 20 steps' mean: what the frequencies of single bytes give is some 3.3
TINY = replace(
    deepseek_mla(layers=2),
    vocabulary=256,
    hidden=96,
    heads=4,
    kv_heads=4,
    intermediate=96,
    latent=Latent(query_rank=48, rank=32, nope_dim=16, rope_dim=8, value_dim=16),
    experts=Experts(count=8, top=2),
    dtype=torch.float32,
)


def trained(rank, ranks, device):
    """The mean loss of all ranks at each step, in nats a byte."""
    text = read_corpus(Path(sysconfig.get_path("stdlib"))).training.to(device)
    weights = {name: w.requires_grad_() for name, w in init(TINY, torch.Generator(device).manual_seed(0)).items()}
    optimizer = torch.optim.AdamW(weights.values(), lr=RATE, fused=True)
    draw = torch.Generator().manual_seed(1 + rank)
    losses = []
    for _ in range(STEPS):
        starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,), generator=draw).to(device)
        tokens = blocks_at(text, starts, CONTEXT + 1)
        loss = cross_entropy(forward(weights, TINY, tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        if ranks > 1:
            for value in (loss.detach_(), *(w.grad for w in weights.values())):
                dist.all_reduce(value.div_(ranks))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def main(folder):
    """Train in as many ranks as torchrun started, or alone; 0 if the loss fell below BOUND."""
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if ranks > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    losses = trained(rank, ranks, device)
    if ranks > 1:
        dist.destroy_process_group()
    last = sum(losses[-20:]) / 20
    if rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "loss.svg").write_text(drawn(losses, BOUND))
        print(f"loss {losses[0]:.2f} at step 1, {last:.2f} over the last 20 of {STEPS}; expected below {BOUND}: {folder / 'loss.svg'}")
    return 0 if last < BOUND else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("artifacts/train_deepseek_v3")))
