"""A thread polls NVML; the decode loop only counts."""
# allows: threads
# guess: 1.4x, five NVML queries of 0.15 ms and a page of 0.15 ms beside a step of 2.4 ms

import threading

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.metrics import Latencies, Sensor
from common.serving.step import step

BLOCK = 16  # tokens
EVERY_S = 0.25


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    blocks = KvBlocks(config, blocks=slots * -(-(prompt + longest) // BLOCK), block_tokens=BLOCK, device=device)
    sensor = Sensor(device)

    def serve():
        latencies, pages = Latencies(), []
        waiting, running, last = arrivals.wait(), [], {}
        latencies.arrived(waiting)

        def poll():
            while not ended.wait(EVERY_S):
                pages.append(latencies.page(sensor.read()))

        ended, thread = threading.Event(), threading.Thread(target=poll, name="monitor")
        thread.start()
        while waiting or running:
            free = slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            chunks = [last[request.id] if request.id in last else torch.tensor(request.prompt, device=device) for request in running]
            logits = step(weights, config, blocks, [request.id for request in running], chunks)
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            latencies.stepped(running, done)
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                blocks.release(request_id)
            running = [request for request in running if request.id not in done]
            come = arrivals.poll() if waiting or running else arrivals.wait()
            latencies.arrived(come)
            waiting += come
        ended.set()
        thread.join()
        report("polls", Metric(len(pages), "NVML polls", "lower"))
        report("gap_p99", Metric(1e3 * latencies.gap.quantile(0.99), "ms, as the loop sees it", "lower"))

    return serve
