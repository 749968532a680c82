"""Requests that would wait too long are refused on arrival."""
# predicts: baseline goodput 0.54 = (16 + 0.100 / (1 / 118 - 1 / 177)) / requests  (a wait grows by 2.8 ms per request)
# predicts: optimized goodput 0.83 = (118 * requests / 177 + 0.100 * 118 + 4) / requests  (all that the engine can answer)

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.pace import Pace
from common.serving.step import step

BLOCK = 16  # tokens


def to_end(waiting, running, slots):
    """How many answers end before a new request gets a slot."""
    return max(0, waiting + running + 1 - slots)


def prepare(weights, config, slots, prompt, longest, limit_ms, arrivals, emit, report, device):
    blocks = KvBlocks(config, blocks=slots * -(-(prompt + longest) // BLOCK), block_tokens=BLOCK, device=device)

    def serve():
        waiting, refused, running, last, pace, turned = arrivals.wait(), [], [], {}, Pace(), 0
        while waiting or running or refused:
            if not (waiting or running):  # nobody comes any more
                waiting, refused = refused, []
            free = slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            chunks = [last[request.id] if request.id in last else torch.tensor(request.prompt, device=device) for request in running]
            logits = step(weights, config, blocks, [request.id for request in running], chunks)
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                blocks.release(request_id)
                pace.ended()
            running = [request for request in running if request.id not in done]
            for request in arrivals.poll() if waiting or running else arrivals.wait():
                admitted = pace.wait_ms(to_end(len(waiting), len(running), slots)) <= limit_ms
                (waiting if admitted else refused).append(request)
                turned += not admitted
        report("refused", Metric(turned, "requests", "lower"))

    return serve
