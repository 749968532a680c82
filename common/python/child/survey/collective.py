"""What the GPUs of a machine can do together, measured by a process a GPU: sums over all of them.

Source: torch.distributed, all_reduce; NCCL on GPUs, gloo on a CPU.
Bus bandwidth is, as nccl-tests has it, 2 (ranks - 1) / ranks of the bytes a second.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from common.python.child.device.sampler import Sample
from common.python.child.distributed import Group, take_device
from common.python.child.survey.host import Findings, Way, samples_of
from common.python.processes import messages
from common.python.wording import bytes_text

_BYTES = {"cuda": (64 << 20, 256 << 20, 1 << 30), "cpu": (1 << 20,)}


def all_reduce(request: messages.Survey) -> Findings:
    """The bus bandwidth of an all-reduce of the ranks of `request`, each of which asks; a sample is the slowest rank's."""
    take_device(request.rank, request.ranks if request.device == "cuda" else 1)
    group = Group(request.rank, request.ranks, request.device, request.rendezvous)
    try:
        ways = [_sum_of(size, request, group) for size in _BYTES[request.device]]
    finally:
        group.end()
    findings = Findings()
    findings.keep("all_reduce", "bytes/s", ways)
    return findings


def _sum_of(size: int, request: messages.Survey, group: Group) -> Way:
    # Each sum is as many times larger as there are ranks: no infinity in so few.
    values = torch.empty(size // 4, device=request.device).normal_()

    def call() -> None:
        dist.all_reduce(values)
        if request.device == "cuda":
            torch.cuda.synchronize()

    samples = samples_of(call, before=group.meet)
    slowest = torch.tensor([sample.ns for sample in samples], dtype=torch.float64, device=request.device)
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    ranks = request.ranks
    how = f"{bytes_text(size)} a rank, {ranks} ranks, bus bandwidth"
    return Way(how, 2 * (ranks - 1) / ranks * size, [Sample(ns) for ns in slowest.tolist()])
