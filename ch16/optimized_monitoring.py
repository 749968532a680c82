"""Figures are copied aside, and observed once they have come."""
# allows: sync
# guess: 1.04x, a step of 2.4 ms no longer waits 0.1 ms for the device's last kernels and a copy

from collections import deque

import torch
from shared_monitored import Loop
from shared_scraped import Figures

from common.serving.metrics import now


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    loop = Loop(weights, config, slots, prompt + longest, device)

    def serve():
        figures, pending = Figures(device), deque()

        def settle():
            while pending and (pending[0][0] is None or pending[0][0].query()):
                _, of_whom, surprisal = pending.popleft()
                figures.observe(*of_whom, surprisal.tolist())  # already of the host

        def stepped(phase, running, done, surprisal):
            queued = now()
            copied = surprisal.to("cpu", non_blocking=True)  # into pinned memory, behind the step
            event = torch.cuda.Event() if device.type == "cuda" else None
            if event is not None:
                event.record()
            pending.append((event, (phase, running, done, queued), copied))
            settle()

        loop.serve(arrivals, emit, figures.latencies.arrived, stepped)
        if pending:
            pending[-1][0].synchronize()  # once a trace
        settle()
        figures.tell(report)

    return serve
