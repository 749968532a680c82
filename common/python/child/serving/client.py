"""The process of the clients: it knows what will be asked, sends each prompt when it is due, and stamps tokens when it can read them.

It never imports a side. Its clock starts when the side says that its step begins, and what it reads at a stamp is what is judged.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.python.child.serving.ring import Array, Ring, Sizes
from common.python.child.sides.loader import load_workload
from common.python.errors import SideFailure, Status
from common.python.pairs.serving import Serving
from common.python.pairs.traces import Planned, draw_trace
from common.python.pairs.workload import Workload
from common.python.processes import messages
from common.python.processes.messages import Answer, AnsweredRequest, AnyRequest
from common.python.results import ServedRequest

PROBES = 32  # logits of each row that are copied: of byte_lm's 256, so many show a stale block that 8 would not in 1 of 1000 requests
_PR_SET_TIMERSLACK = 29


class Client:
    """Answers AskTraffic and Replay requests."""

    def __init__(self) -> None:
        self._workloads: dict[str, Workload] = {}
        self._random = random.SystemRandom()  # which answers are kept, and which logits, follows from no seed
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1)  # ns: the default lets every glance come 50 us late
        with contextlib.suppress(PermissionError):  # with other work on the machine a stamp is else a time slice late, some milliseconds
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    def answer(self, request: AnyRequest) -> Answer:
        """Tell the traffic, or replay a trace. Raises SideFailure."""
        match request:
            case messages.AskTraffic():
                return self._told(request)
            case messages.Replay():
                return self._replayed(request)
            case _:
                raise SideFailure(Status.CRASHED, f"the client was asked for {request.kind}; expected ask_traffic or replay")

    def close(self) -> None:
        """Nothing to give back."""

    def _serving(self, path: str) -> Serving:
        if path not in self._workloads:
            self._workloads[path] = load_workload(Path(path))
        workload = self._workloads[path]
        if workload.serving is None:
            raise SideFailure(Status.CRASHED, f"{Path(path).name}: found no serving; expected it of a workload that a client is asked for")
        return workload.serving

    def _told(self, request: messages.AskTraffic) -> Answer:
        serving = self._serving(request.workload)
        traffic = serving.traffic_at(request.shape)
        return messages.TrafficTold(
            nonce=request.nonce,
            count=traffic.count,
            per_s=traffic.rate_per_s(0.0),
            share_of_saturation=traffic.share_of_saturation,
            slo_ttft_ms=serving.slo.ttft_ms,
            slo_tpot_ms=serving.slo.tpot_ms,
        )

    def _replayed(self, request: messages.Replay) -> Answer:
        serving = self._serving(request.workload)
        traffic = serving.traffic_at(request.shape)
        rate = 0.0 if request.closed_loop else traffic.rate_per_s(request.saturation_per_s)
        trace = draw_trace(traffic, serving.vocabulary, request.seed, rate)
        columns = sorted(self._random.sample(range(serving.vocabulary), min(PROBES, serving.vocabulary)))
        ring = Ring.create(Path(request.ring), Sizes.of(trace, len(columns)))
        ring.arrays["columns"][:] = columns
        _leave(request.core)
        # A bound that is the same for all: the length of an answer is for the side to find out.
        playing = _Replay(ring, trace, traffic.output_tokens[1])
        problem = playing.run(request.seconds, request.glance_s)
        kept = [] if problem else sorted(self._random.sample(range(len(trace)), min(request.picks, len(trace))))
        answers = [playing.answer_of(position) for position in kept]
        return messages.Replayed(nonce=request.nonce, requests=playing.requests(), answers=answers, problem=problem)


def _leave(core: int) -> None:
    """Keep off the side's core where there is another."""
    if core >= 0 and (others := set(range(os.cpu_count() or 1)) & os.sched_getaffinity(0) - {core}):
        os.sched_setaffinity(0, others)


class _Replay:
    """One trace on its way: what was sent, and what came back when."""

    def __init__(self, ring: Ring, trace: Sequence[Planned], most_tokens: int) -> None:
        self._ring = ring
        self._trace = trace
        self._sent = 0
        self._read = 0  # slots below it are stamped
        self._stamps: Array = np.zeros(ring.sizes.slots, dtype=np.int64)  # ns; 0: not yet
        self._owners: Array = np.zeros(ring.sizes.slots, dtype=np.int64)
        self._tokens: Array = np.zeros(ring.sizes.slots, dtype=np.int64)
        self._probed: Array = np.zeros((ring.sizes.slots, ring.sizes.probes), dtype=np.float32)
        self._begin = 0
        ring.arrays["most"][:] = most_tokens
        ring.arrays["wanted"][:] = [planned.output_tokens for planned in trace]
        ring.put("ready", 1)

    def run(self, seconds: float, glance_s: float) -> str:
        """Send and stamp until the side has finished, or for so long; what is wrong with what came, in a sentence, or ""."""
        deadline = time.monotonic_ns() + int(seconds * 1e9)
        while not self._ring.get("started"):
            if time.monotonic_ns() > deadline:
                return "the side did not begin in time; expected its step to be called"
            time.sleep(glance_s)
        self._begin = time.monotonic_ns()
        due = [self._begin + int(planned.due_s * 1e9) for planned in self._trace]
        finished = False
        while not finished:
            finished = bool(self._ring.get("finished"))  # before the last look, which then sees all
            while self._sent < len(due) and due[self._sent] <= time.monotonic_ns():
                self._send()
            if problem := self._stamp():
                return problem
            if time.monotonic_ns() > deadline:
                return f"the trace took more than {seconds:.0f} s; expected it to end by then"
            if not finished:
                time.sleep(glance_s)
        return self._missing()

    def _send(self) -> None:
        prompt = self._trace[self._sent].prompt
        self._ring.arrays["prompts"][self._sent, : len(prompt)] = prompt
        self._ring.arrays["lengths"][self._sent] = len(prompt)
        self._sent += 1
        self._ring.put("arrived", self._sent)

    def _stamp(self) -> str:
        """Stamp what can be read now, and take its value: what is written there later is of no use."""
        reserved = min(self._ring.get("reserved"), self._ring.sizes.slots)
        window = slice(self._read, reserved)
        arrays = self._ring.arrays
        new = self._read + np.flatnonzero((arrays["flags"][window] != 0) & (self._stamps[window] == 0))
        if len(new) == 0:
            return ""
        now = time.monotonic_ns()
        self._owners[new] = arrays["owners"][new]
        self._tokens[new] = arrays["tokens"][new]
        self._probed[new] = arrays["probed"][new]
        self._stamps[new] = now
        if (self._owners[new] >= self._sent).any() or (self._owners[new] < 0).any():
            return f"found a token of request {int(self._owners[new].max())} before it was sent; expected tokens of requests that arrived"
        while self._read < reserved and self._stamps[self._read]:
            self._read += 1
        return ""

    def _missing(self) -> str:
        for position, planned in enumerate(self._trace):
            if (found := len(self._slots(position))) != planned.output_tokens:
                return f"request {position} got {found} tokens by the end of the step; expected {planned.output_tokens}"
        return ""

    def _slots(self, position: int) -> Array:
        slots: Array = np.flatnonzero((self._stamps != 0) & (self._owners == position))
        return slots

    def requests(self) -> list[ServedRequest]:
        """Every request with its stamps."""
        return [
            ServedRequest(
                due_us=round(planned.due_s * 1e6),
                prompt_tokens=len(planned.prompt),
                tokens_us=tuple(((self._stamps[self._slots(position)] - self._begin) // 1000).tolist()),
            )
            for position, planned in enumerate(self._trace)
        ]

    def answer_of(self, position: int) -> AnsweredRequest:
        """The whole answer of a request."""
        slots = self._slots(position)
        return AnsweredRequest(
            id=position,
            prompt=list(self._trace[position].prompt),
            tokens=self._tokens[slots].tolist(),
            columns=self._ring.arrays["columns"].tolist(),
            probed=self._probed[slots].tolist(),
        )
