"""What makes the processes of a side one: torch.distributed, which a side finds started, and the harness's own communicators beside it.

What decides how often a step is called must come out the same in every process, or one waits for ever for a collective that no other
enters. So such decisions are rank 0's. Source: torch.distributed, init_process_group.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Mapping
from datetime import timedelta
from time import perf_counter_ns
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from common.python.pairs.layout import require_grid
from common.python.processes import messages

# Captured before any side is imported, so a side that patches torch patches nothing here.
_tensor = torch.tensor
_item = torch.Tensor.item
_clock_ns = perf_counter_ns  # the kernel's monotonic clock, which all processes of a host share

_PATIENCE = timedelta(hours=1)  # limits are the parent's, who says which rank it was
_STANDARD_ERROR = 2
_LEAD_NS = 300_000  # in which all have left the collective that named the time


class Together(Protocol):
    """The processes of a side as one of them sees them."""

    @property
    def ranks(self) -> int:
        """How many they are."""

    @property
    def names(self) -> Mapping[str, Any]:
        """What `prepare` and `metrics` may ask for, by name."""

    def first(self, flag: bool) -> bool:
        """What rank 0 says."""

    def any(self, flag: bool) -> bool:
        """Whether any rank says so."""

    def meet(self) -> None:
        """Wait until all are here."""

    def start(self) -> None:
        """Wait until all are here, and go on at the same moment as they."""

    def line_up(self) -> None:
        """Have the GPU wait, where the current stream has got to, until all GPUs are there."""

    def end(self) -> None:
        """End what was started."""


class Alone:
    """A side in one process, which asks nobody."""

    ranks = 1
    names: Mapping[str, Any] = {}

    def first(self, flag: bool) -> bool:
        """The flag itself."""
        return flag

    def any(self, flag: bool) -> bool:
        """The flag itself."""
        return flag

    def meet(self) -> None:
        """Nobody else comes."""

    def start(self) -> None:
        """Nobody else comes."""

    def line_up(self) -> None:
        """Nobody else comes."""

    def end(self) -> None:
        """Nothing was started."""


class Group:
    """One of several ranks; torch.distributed is started from here on: NCCL where the side works on GPUs, gloo on a CPU."""

    def __init__(self, rank: int, ranks: int, device: str, rendezvous: str) -> None:
        # A rank that is silent is asked where it is, by this signal.
        faulthandler.register(signal.SIGUSR1, file=_STANDARD_ERROR, all_threads=False)
        self.ranks = ranks
        self._device = device
        on_gpu = device == "cuda"
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            init_method=f"file://{rendezvous}",
            rank=rank,
            world_size=ranks,
            timeout=_PATIENCE,
            device_id=torch.device("cuda", rank) if on_gpu else None,
        )
        self._host = dist.new_group(backend="gloo", timeout=_PATIENCE)
        self._gpus = dist.new_group(backend="nccl", timeout=_PATIENCE) if on_gpu else None
        self._token = torch.zeros(1, device=device)
        self._meshes: dict[tuple[tuple[str, int], ...], DeviceMesh] = {}
        self._is_first = rank == 0
        self.names: Mapping[str, Any] = {"rank": rank, "ranks": ranks, "mesh": self._mesh}

    def first(self, flag: bool) -> bool:
        """The `flag` of rank 0, on every rank. A collective: all ranks must call it."""
        return self._sum(flag and self._is_first) > 0

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true on at least one rank, on every rank. A collective: all ranks must call it."""
        return self._sum(flag) > 0

    def meet(self) -> None:
        """Wait until all are here."""
        self._sum(0)

    def start(self) -> None:
        """Wait until all are here, and go on at a time of the host's clock that rank 0 names: who leaves a collective first is chance."""
        at = self._sum(_clock_ns() + _LEAD_NS if self._is_first else 0)
        while _clock_ns() < at:
            pass

    def line_up(self) -> None:
        """Have the GPU wait, where the current stream has got to, until all GPUs are there."""
        if self._gpus is not None:
            self._gpus.allreduce([self._token]).wait()

    def end(self) -> None:
        """End torch.distributed."""
        dist.destroy_process_group()

    def _sum(self, number: int) -> int:
        shared = _tensor([number])
        self._host.allreduce([shared]).wait()
        return int(_item(shared))

    def _mesh(self, **dims: int) -> DeviceMesh:
        """The ranks in a grid of `dims`, the last varying fastest. Raises BenchmarkError if the grid has not a place for each."""
        require_grid(self.ranks, dims)
        key = tuple(dims.items())
        if key not in self._meshes:
            self._meshes[key] = init_device_mesh(self._device, tuple(dims.values()), mesh_dim_names=tuple(dims))
        return self._meshes[key]


def join(request: messages.Load) -> Together:
    """The other ranks of the side that `request` loads, once all have joined; a side of one process is alone.

    The current device is the rank's own GPU from here on.
    """
    take_device(request.rank, request.ranks if request.device == "cuda" else 1)
    return Group(request.rank, request.ranks, request.device, request.rendezvous) if request.ranks > 1 else Alone()


def take_device(rank: int, ranks: int) -> None:
    """Make GPU number `rank` torch's current device. Does nothing for a side of one process."""
    if ranks > 1:
        torch.cuda.set_device(rank)
