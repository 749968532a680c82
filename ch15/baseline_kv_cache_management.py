"""Baseline: a request gets a row of the cache, as long as the longest request could become."""

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step


def prepare(weights, config, budget, prompt, longest, arrivals, emit, report, device):
    row = prompt + longest
    rows = KvBlocks(config, blocks=budget // row, block_tokens=row, device=device)

    def serve():
        waiting, running, last, sizes = arrivals.wait(), [], {}, []
        while waiting or running:
            free = rows.pool.free
            running, waiting = running + waiting[:free], waiting[free:]
            chunks = [last[request.id] if request.id in last else torch.tensor(request.prompt, device=device) for request in running]
            logits = step(weights, config, rows, [request.id for request in running], chunks)
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            sizes.append(len(running))
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                rows.release(request_id)
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report("batch", Metric(sum(sizes) / len(sizes), "sequences", "higher"))

    return serve
