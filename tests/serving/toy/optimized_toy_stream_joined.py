"""Honest: chooses tokens on a stream that the one of emit waits for."""

# needs: gpus 1

import torch
from shared_toy import advance, logits_of, read, report_batch

SLOTS = 4


def prepare(weights, arrivals, emit, report, device):
    other = torch.cuda.Stream()

    def serve():
        waiting, running, sizes = arrivals.wait(), [], []
        state = torch.empty(0, weights["mix"].shape[0], device=weights["mix"].device)
        while waiting or running:
            while waiting and len(running) < SLOTS:
                running.append(waiting.pop(0))
                state = torch.cat([state, read(weights, running[-1].prompt)])
            rows = logits_of(weights, state)
            tokens = torch.zeros(len(rows), dtype=torch.int64, device=device)
            other.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(other):
                torch.cuda._sleep(100_000)
                tokens.copy_(rows.argmax(-1))
            torch.cuda.current_stream().wait_stream(other)
            sizes.append(len(running))
            done = emit(running, tokens, rows)
            stay = [i for i, request in enumerate(running) if request.id not in done]
            state = advance(weights, state, tokens)[stay]
            running = [running[i] for i in stay]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report_batch(report, sizes)

    return serve
