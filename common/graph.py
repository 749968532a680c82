"""A call, captured as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

Answer = TypeVar("Answer")


def captured(
    call: Callable[[], Answer], pool: tuple[int, int] | None = None, stream: torch.cuda.Stream | None = None
) -> Callable[[], Answer]:
    """A function that replays what `call` launches and returns its answer, which lies where it was captured; on a CPU the call itself.

    Graphs that never run at the same time may share the memory of a `pool`: capture the one that needs most first. Captured kernels keep
    the priority of the `stream` that they were captured in, whichever stream a replay is launched to.
    """
    if not torch.cuda.is_available():
        return call
    side = stream or torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # compiles and loads, which must not be captured
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool, stream=stream):  # type: ignore[arg-type]  # a pool has a private type of torch
        answer = call()

    def replay() -> Answer:
        graph.replay()
        return answer

    replay.reads = call  # type: ignore[attr-defined]  # a graph keeps addresses alone: what it reads must live as long as it does
    return replay
