"""A call, captured as a CUDA graph; collectives of several ranks may be within."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Replay(Generic[Answer]):
    """Launches anew what a call launched when it was captured."""

    reads: Callable[[], Answer]  # a graph keeps addresses alone: what it reads must live as long as it does
    graph: torch.cuda.CUDAGraph
    answer: Answer

    def __call__(self) -> Answer:
        """Replay it on the current stream: the call's answer, which lies where it was captured. The next replay overwrites it."""
        self.graph.replay()
        return self.answer

    def close(self) -> None:
        """Destroy the graph. Due before torch.distributed ends, which otherwise waits for ever for graphs that hold collectives."""
        self.graph.reset()


@dataclass(frozen=True, eq=False)
class Call(Generic[Answer]):
    """The call itself, on a CPU, which has no graphs."""

    call: Callable[[], Answer]

    def __call__(self) -> Answer:
        """Call it."""
        return self.call()

    def close(self) -> None:
        """There is no graph to destroy."""


def captured(
    call: Callable[[], Answer], pool: tuple[int, int] | None = None, stream: torch.cuda.Stream | None = None
) -> Replay[Answer] | Call[Answer]:
    """A function that replays what `call` launches and returns its answer; without a GPU the call itself. Whoever has it may close it.

    If `call` has collectives, all ranks must capture in the same order, and close what they captured.

    Graphs that never run at the same time may share the memory of a `pool`: capture the one that needs most first. Captured kernels keep
    the priority of the `stream` that they were captured in, whichever stream a replay is launched to.
    """
    if not torch.cuda.is_available():
        return Call(call)
    side = stream or torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # compiles, loads and connects ranks, which must not be captured
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    mode = "thread_local"  # NCCL's watchdog asks the device for events meanwhile
    with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode=mode):  # type: ignore[arg-type]  # a pool has a private type
        return Replay(call, graph, call())
