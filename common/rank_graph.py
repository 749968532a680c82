"""What one of several ranks launches in a call, captured as a CUDA graph; collectives may be within. `graph` captures for one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

Answer = TypeVar("Answer")


class RankGraph(Generic[Answer]):
    """A CUDA graph of what `call` launches on `device`; on a CPU the call itself.

    If `call` has collectives, all ranks must make their graphs in the same order.
    """

    def __init__(self, call: Callable[[], Answer], device: torch.device) -> None:
        self._call = call  # a graph keeps addresses alone: what it reads must live as long as it does
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._answer = self._capture()

    def __call__(self) -> Answer:
        """Replay it on the current stream: the answer of `call`, which lies where it was captured. The next replay overwrites it."""
        if self._graph is None:
            return self._call()
        self._graph.replay()
        return self._answer

    def close(self) -> None:
        """Destroy the graph. Due before torch.distributed ends, which otherwise waits for ever for graphs that hold collectives."""
        if self._graph is not None:
            self._graph.reset()

    def _capture(self) -> Answer:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._call()  # loads kernels and connects ranks, which must not be captured
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):  # NCCL's watchdog asks the device for events meanwhile
            return self._call()
