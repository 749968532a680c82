"""Continuous batching over paged keys and values, with as many tokens a step as a budget allows."""

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


def plan(waiting, budget):
    """How many tokens of each sequence a step takes, for those that it has of each: first one of all that decode, then chunks of prompts.

    A sequence with one token left to compute decodes. `budget` None takes all.
    """
    left = sum(waiting) if budget is None else max(budget - sum(count == 1 for count in waiting), 1)
    chunks = []
    for count in waiting:
        chunks.append(1 if count == 1 else min(count, left))
        left -= chunks[-1] if count > 1 else 0
    return chunks


def server(weights, config, slots, longest_context, budget, arrivals, emit, report, device):
    """A function that answers one trace of requests."""
    blocks = KvBlocks(config, blocks=slots * -(-longest_context // BLOCK), block_tokens=BLOCK, device=device)

    def serve():
        waiting, running, tokens, sizes = arrivals.wait(), [], {}, []
        while waiting or running:
            free = slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            for request in running:  # what each has yet to compute
                if request.id not in tokens:
                    tokens[request.id] = torch.tensor(request.prompt, device=device)
            counts = plan([len(tokens[request.id]) for request in running], budget)
            batch = [(request, count) for request, count in zip(running, counts, strict=True) if count]
            sizes.append(sum(counts))
            logits = step(weights, config, blocks, [r.id for r, _ in batch], [tokens[r.id][:count] for r, count in batch])
            ready = [i for i, (request, count) in enumerate(batch) if count == len(tokens[request.id])]
            for request, count in batch:
                tokens[request.id] = tokens[request.id][count:]
            if ready:
                answered, rows = [batch[i][0] for i in ready], logits[ready]
                chosen = rows.argmax(-1)
                tokens |= {request.id: token for request, token in zip(answered, chosen.split(1), strict=True)}
                done = emit(answered, chosen, rows)
                for request_id in done:
                    blocks.release(request_id)
                running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report("most_tokens", Metric(max(sizes), "tokens", "lower"))

    return serve
