"""Continuous batching whose step takes at most `budget` tokens of prompts: a knob that `choose` turns between steps."""

import torch

from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens
DEFAULT = 64  # tokens of prompts a step: a careful engine's
BUDGETS = (16, 64, 256, 1024)


def ignored(tokens):
    """What a fixed budget learns."""


def plan(waiting, budget):
    """How many tokens of each sequence a step takes, for those it has left: one of all that decode, then chunks of prompts.

    A sequence with one token left decodes. Chunks have at most `budget` tokens together.
    """
    counts = []
    for count in waiting:
        counts.append(1 if count == 1 else min(count, budget))
        budget -= counts[-1] if count > 1 else 0
    return counts


def server(weights, config, slots, longest_context, choose, learn, arrivals, emit, device):
    """A function that answers one trace. Before a step `choose()` says its budget; after it `learn(tokens)` gets how many
    tokens of prompts and of answers it computed.
    """
    blocks = KvBlocks(config, blocks=slots * -(-longest_context // BLOCK), block_tokens=BLOCK, device=device)

    def serve():
        waiting, running, tokens = arrivals.wait(), [], {}
        while waiting or running:
            running, waiting = running + waiting[: slots - len(running)], waiting[slots - len(running) :]
            for request in running:  # what each has yet to compute
                if request.id not in tokens:
                    tokens[request.id] = torch.tensor(request.prompt, device=device)
            counts = plan([len(tokens[request.id]) for request in running], choose())
            batch = [(request, count) for request, count in zip(running, counts, strict=True) if count]
            logits = step(weights, config, blocks, [r.id for r, _ in batch], [tokens[r.id][:count] for r, count in batch])
            ready = [i for i, (request, count) in enumerate(batch) if count == len(tokens[request.id])]
            for request, count in batch:
                tokens[request.id] = tokens[request.id][count:]
            if ready:
                answered, rows = [batch[i][0] for i in ready], logits[ready]
                chosen = rows.argmax(-1)
                tokens |= {request.id: token for request, token in zip(answered, chosen.split(1), strict=True)}
                for request_id in emit(answered, chosen, rows):
                    blocks.release(request_id)
                    running = [request for request in running if request.id != request_id]
            if device.type == "cuda":
                torch.cuda.current_stream().synchronize()  # or a step would seem to take as long as its launches
            learn(sum(counts))
            waiting += arrivals.poll() if waiting or running else arrivals.wait()

    return serve
