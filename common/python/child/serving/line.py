"""What a side gets in place of its clients: requests as they arrive, and `emit`, which copies tokens behind the caller's stream.

On a GPU the shared memory is registered with CUDA. Tokens, logits and then a flag a token are copied to it in stream order, so nothing
waits, and what the client reads behind a flag is what the side has computed by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from common.python.child.reported import reported_of
from common.python.child.serving.ring import Ring
from common.python.errors import SideFailure, Status
from common.python.pairs.serving import Request
from common.python.pairs.workload import Metric
from common.python.results import ReportedMetric

# Captured before any side is imported, so a side that patches torch patches nothing here.
_copy = torch.Tensor.copy_
_select = torch.index_select
_to = torch.Tensor.to
_detach = torch.Tensor.detach
_as_tensor = torch.as_tensor
_ones = torch.ones
_monotonic = time.monotonic
_sleep = time.sleep
_GLANCE_S = 2e-5
_READY_S = 30.0


class Line:
    """Of one side: `arrivals`, `emit` and `report`, which stay the same over all traces."""

    def __init__(self, vocabulary: int, device: torch.device, file: str) -> None:
        self._vocabulary = vocabulary
        self._device = device
        self._file = file
        self._maybe_ring: Ring | None = None
        self._handed = 0
        self._counts: list[int] = []
        self._columns = torch.empty(0, dtype=torch.int64)
        self._flags = torch.empty(0, dtype=torch.int32)
        self._problem = ""
        self._reported: dict[str, ReportedMetric] = {}

    @property
    def given(self) -> dict[str, object]:
        """What `prepare` may ask for."""
        return {"arrivals": self, "emit": self.emit, "report": self.report, "device": self._device}

    def run(self, step: Callable[[], object], path: Path) -> None:
        """Serve the trace that comes through the shared memory at `path`. Raises SideFailure, or whatever the side raises."""
        with self._attached(path) as ring:
            ring.put("started", 1)
            try:
                step()
                if self._device.type == "cuda":
                    torch.cuda.synchronize()
            finally:
                ring.put("finished", 1)
        if self._problem:  # which the side may have caught
            raise SideFailure(Status.WRONG_RESULT, self._problem)

    @contextmanager
    def _attached(self, path: Path) -> Iterator[Ring]:
        ring = _opened(path)
        self._maybe_ring, self._handed, self._counts, self._problem = ring, 0, [0] * ring.sizes.count, ""
        self._reported = {}
        self._columns = _to(ring.tensor("columns"), self._device)
        self._flags = _ones(ring.sizes.slots, dtype=torch.int32, device=self._device)
        with _registered(ring, self._device):
            yield ring
        self._maybe_ring = None

    @property
    def reported(self) -> dict[str, ReportedMetric]:
        """What the side said of the latest trace."""
        return dict(self._reported)

    @property
    def _ring(self) -> Ring:
        if self._maybe_ring is None:
            raise SideFailure(Status.WRONG_RESULT, f"{self._file}: used arrivals or emit outside of a step; expected them within it alone")
        return self._maybe_ring

    def poll(self) -> list[Request]:
        """The requests that arrived since the last call of `poll` or `wait`; does not block."""
        ring, first = self._ring, self._handed
        self._handed = ring.get("arrived")
        lengths, prompts, most = (ring.arrays[name] for name in ("lengths", "prompts", "most"))
        return [Request(id=i, prompt=prompts[i, : lengths[i]].tolist(), most_tokens=int(most[i])) for i in range(first, self._handed)]

    def wait(self) -> list[Request]:
        """Like `poll`, but sleeps until at least one request has arrived; [] when the trace has ended."""
        while not (found := self.poll()) and self._handed < self._ring.sizes.count:
            _sleep(_GLANCE_S)
        return found

    def report(self, name: str, metric: Metric) -> None:
        """A figure of the side's own, self-reported; of a trace the last of a name counts."""
        self._reported |= reported_of({name: metric}, f"{self._file}: report")

    def emit(self, requests: Sequence[Request], tokens: torch.Tensor | Sequence[int], logits: torch.Tensor) -> set[int]:
        """Send a token for each of `requests`, with the rows of `logits` that they were chosen from; who is complete now, by id."""
        ids = [request.id for request in requests]
        if problem := self._unfit(ids, tokens, logits):
            self._problem = f"{self._file}: {problem}"
            raise SideFailure(Status.WRONG_RESULT, self._problem)
        ring = self._ring
        first = ring.get("reserved")
        last = first + len(ids)
        ring.arrays["owners"][first:last] = ids
        ring.put("reserved", last)
        sent = _as_tensor(tokens, dtype=torch.int64)
        self._send(ring, "tokens", first, _detach(sent))
        self._send(ring, "probed", first, _to(_select(_detach(logits), 1, self._columns), torch.float32))
        self._send(ring, "flags", first, self._flags[: len(ids)])
        return {i for i in ids if self._counts[i] == ring.arrays["wanted"][i]}

    @staticmethod
    def _send(ring: Ring, name: str, first: int, values: torch.Tensor) -> None:
        _copy(ring.tensor(name)[first : first + len(values)], values, non_blocking=True)

    def _unfit(self, ids: Sequence[int], tokens: torch.Tensor | Sequence[int], logits: torch.Tensor) -> str:
        """What is wrong with a call of `emit`; if nothing is, its tokens are counted."""
        shape = tuple(logits.shape)
        if shape != (len(ids), self._vocabulary) or len(tokens) != len(ids):
            found = f"{len(ids)} requests, {len(tokens)} tokens and logits of shape {shape}"
            return f"emit got {found}; expected a token and a row of {self._vocabulary} logits for each request"
        if logits.device.type != self._device.type:
            return f"emit got logits on {logits.device}; expected {self._device}"
        wanted = self._ring.arrays["wanted"]
        for i in ids:
            if not 0 <= i < self._handed:
                return f"emitted a token of request {i} before poll or wait gave it; expected one of the {self._handed} that they gave"
            if self._counts[i] == wanted[i]:
                return f"emitted token {wanted[i] + 1} of request {i}; expected {wanted[i]}, after which emit had said that it is complete"
            self._counts[i] += 1
        return ""


def _opened(path: Path) -> Ring:
    deadline = _monotonic() + _READY_S
    while (ring := Ring.open(path)) is None:
        if _monotonic() > deadline:
            raise SideFailure(Status.CRASHED, f"found no client after {_READY_S:g} s; expected one that sends requests")
        _sleep(_GLANCE_S)
    return ring


@contextmanager
def _registered(ring: Ring, device: torch.device) -> Iterator[None]:
    """The shared memory as pinned memory, to which a GPU copies without anybody waiting."""
    if device.type != "cuda":
        yield
        return
    runtime = torch.cuda.cudart()
    torch.cuda.check_error(int(runtime.cudaHostRegister(ring.data.data_ptr(), ring.data.numel(), 0)))
    try:
        yield
    finally:
        torch.cuda.check_error(int(runtime.cudaHostUnregister(ring.data.data_ptr())))
