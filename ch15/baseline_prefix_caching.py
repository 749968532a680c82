"""Baseline: every request computes keys and values of its whole prompt."""

import torch

from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


def prepare(weights, config, slots, blocks, arrivals, emit, device):
    cache = KvBlocks(config, blocks=blocks, block_tokens=BLOCK, device=device)

    def serve():
        waiting, running, last = arrivals.wait(), [], {}
        while waiting or running:
            while waiting and len(running) < slots and cache.reserve(waiting[0].id, len(waiting[0].prompt) + waiting[0].most_tokens):
                request = waiting.pop(0)
                running.append(request)
                last[request.id] = torch.tensor(request.prompt, device=device)
            logits = step(weights, config, cache, [request.id for request in running], [last[request.id] for request in running])
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                cache.release(request_id)
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()

    return serve
