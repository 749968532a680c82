"""Cheat: answers a request that it was not given."""

import torch
from shared_toy import advance, logits_of, read, report_batch

from common import Request

SLOTS = 4


def prepare(weights, arrivals, emit, report):
    def serve():
        waiting, running, sizes = arrivals.wait(), [], []
        row = logits_of(weights, read(weights, waiting[-1].prompt))
        emit([Request(waiting[-1].id + 1, [0], 1)], row.argmax(-1), row)
        state = torch.empty(0, weights["mix"].shape[0], device=weights["mix"].device)
        while waiting or running:
            while waiting and len(running) < SLOTS:
                running.append(waiting.pop(0))
                state = torch.cat([state, read(weights, running[-1].prompt)])
            rows = logits_of(weights, state)
            tokens = rows.argmax(-1)
            sizes.append(len(running))
            done = emit(running, tokens, rows)
            stay = [i for i, request in enumerate(running) if request.id not in done]
            state = advance(weights, state, tokens)[stay]
            running = [running[i] for i in stay]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report_batch(report, sizes)

    return serve
