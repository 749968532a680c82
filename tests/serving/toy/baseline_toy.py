"""Static batches: four requests start together, and the next four when the last of them is done."""

import torch
from shared_toy import advance, logits_of, read, report_batch

SLOTS = 4


def prepare(weights, arrivals, emit, report):
    def serve():
        waiting, sizes = arrivals.wait(), []
        while waiting:
            batch, waiting = waiting[:SLOTS], waiting[SLOTS:]
            state = torch.cat([read(weights, request.prompt) for request in batch])
            done = set()
            while len(done) < len(batch):
                rows = logits_of(weights, state)
                tokens = rows.argmax(-1)
                left = [i for i, request in enumerate(batch) if request.id not in done]
                sizes.append(len(left))
                done |= emit([batch[i] for i in left], tokens[left], rows[left])
                state = advance(weights, state, tokens)
            waiting += arrivals.poll() if waiting else arrivals.wait()
        report_batch(report, sizes)

    return serve
