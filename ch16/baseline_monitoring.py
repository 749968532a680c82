"""Baseline: the decode loop asks NVML, and renders the page, after every step."""

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.metrics import Latencies, Sensor
from common.serving.step import step

BLOCK = 16  # tokens


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    blocks = KvBlocks(config, blocks=slots * -(-(prompt + longest) // BLOCK), block_tokens=BLOCK, device=device)
    sensor = Sensor(device)

    def serve():
        latencies, pages = Latencies(), []
        waiting, running, last = arrivals.wait(), [], {}
        latencies.arrived(waiting)
        while waiting or running:
            free = slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            chunks = [last[request.id] if request.id in last else torch.tensor(request.prompt, device=device) for request in running]
            logits = step(weights, config, blocks, [request.id for request in running], chunks)
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            latencies.stepped(running, done)
            pages.append(latencies.page(sensor.read()))
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                blocks.release(request_id)
            running = [request for request in running if request.id not in done]
            come = arrivals.poll() if waiting or running else arrivals.wait()
            latencies.arrived(come)
            waiting += come
        report("polls", Metric(len(pages), "NVML polls", "lower"))
        report("gap_p99", Metric(1e3 * latencies.gap.quantile(0.99), "ms, as the loop sees it", "lower"))

    return serve
