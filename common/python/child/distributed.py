"""What makes the processes of a side one: torch.distributed, which a side finds started, and beside it where the harness has them meet.

What decides how often a step is called must come out the same in every process, or one waits for ever for a collective that no other
enters. So such decisions are rank 0's. Source: torch.distributed, init_process_group.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import importlib
import signal
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from common.python.child.device.driver import mapped
from common.python.child.device.helpers import Gate
from common.python.child.meeting import Meeting
from common.python.pairs.layout import require_grid
from common.python.processes import messages

_PATIENCE = timedelta(hours=1)  # limits are the parent's, who says which rank it was
_STANDARD_ERROR = 2


class Together(Protocol):
    """The processes of a side as one of them sees them."""

    @property
    def ranks(self) -> int:
        """How many they are."""

    @property
    def gate(self) -> Gate | None:
        """Behind which all their GPUs wait, where they have some."""

    @property
    def names(self) -> Mapping[str, Any]:
        """What `prepare` and `metrics` may ask for, by name."""

    def first(self, flag: bool) -> bool:
        """What rank 0 says."""

    def any(self, flag: bool) -> bool:
        """Whether any rank says so."""

    def meet(self) -> None:
        """Wait until all are here, and go on at the same moment as they."""

    def end(self) -> None:
        """End what was started."""


class Alone:
    """A side in one process, which asks nobody."""

    ranks = 1
    gate = None
    names: Mapping[str, Any] = {}

    def first(self, flag: bool) -> bool:
        """The flag itself."""
        return flag

    def any(self, flag: bool) -> bool:
        """The flag itself."""
        return flag

    def meet(self) -> None:
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
        self._meeting = Meeting(f"{rendezvous}_meeting", rank, ranks)
        self.gate = Gate(self._meeting.gate, mapped(self._meeting.gate)) if on_gpu else None
        self._meshes: dict[tuple[tuple[str, int], ...], DeviceMesh] = {}
        self.names: Mapping[str, Any] = {"rank": rank, "ranks": ranks, "mesh": self._mesh}

    def first(self, flag: bool) -> bool:
        """The `flag` of rank 0, on every rank: all must ask."""
        return self._meeting.meet(flag)[0]

    def any(self, flag: bool) -> bool:
        """Whether `flag` is true on at least one rank, on every rank: all must ask."""
        return any(self._meeting.meet(flag))

    def meet(self) -> None:
        """Wait until all are here."""
        self._meeting.meet()

    def end(self) -> None:
        """End torch.distributed."""
        dist.destroy_process_group()

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


@functools.cache
def start_meshes() -> None:
    """Import what DTensor and FSDP are made of, 900 modules of torch's, so no side pays for them.

    DTensor takes torch's compiler in with its first use, so a process that forks others must be one for compiled sides.
    """
    for name in ("torch.distributed.tensor.parallel", "torch.distributed.fsdp", "torch._dynamo"):
        importlib.import_module(name)
    gc.freeze()


def take_device(rank: int, ranks: int) -> None:
    """Make GPU number `rank` torch's current device. Does nothing for a side of one process."""
    if ranks > 1:
        torch.cuda.set_device(rank)
