"""A request holds the 16-token blocks that it has filled."""
# predicts: baseline output_tokens_per_s 2875 = requests * 68 / (458 * (6.85e9 / dram_read + 0.3e-3) + 0.02) on h100  (458 steps)
# predicts: optimized output_tokens_per_s 5272 = requests * 68 / (246 * (6.85e9 / dram_read + 0.3e-3) + 0.02) on h100  (246 steps)

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


def prepare(weights, config, budget, arrivals, emit, report, device):
    blocks = KvBlocks(config, blocks=budget // BLOCK, block_tokens=BLOCK, device=device)

    def preempt_until_all_fit(running):
        """Make room for one more token of each. The youngest give their blocks back; they are returned."""
        preempted = []
        for request in list(running):  # the oldest first
            while request in running and not blocks.reserve(request.id, blocks.length(request.id) + 1):
                preempted.insert(0, running.pop())
                blocks.release(preempted[0].id)
        return preempted

    def serve():
        waiting, running, said, sizes, recomputed = arrivals.wait(), [], {}, [], 0
        while waiting or running:
            preempted = preempt_until_all_fit(running)
            waiting, recomputed = preempted + waiting, recomputed + len(preempted)
            # A block a sequence stays free, or what is admitted now would be preempted soon.
            while waiting and blocks.pool.free > len(running):
                request = waiting[0]
                if not blocks.reserve(request.id, len(request.prompt) + len(said.get(request.id, ()))):
                    break
                running.append(waiting.pop(0))
            chunks = []
            for request in running:
                if blocks.length(request.id):
                    chunks.append(said[request.id][-1])
                else:  # new, or preempted: then what it has said is read again
                    chunks.append(torch.cat([torch.tensor(request.prompt, device=device), *said.setdefault(request.id, [])]))
            logits = step(weights, config, blocks, [request.id for request in running], chunks)
            tokens = logits.argmax(-1)
            done = emit(running, tokens, logits)
            sizes.append(len(running))
            for request, token in zip(running, tokens.split(1), strict=True):
                said[request.id].append(token)
            for request_id in done:
                blocks.release(request_id)
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report("batch", Metric(sum(sizes) / len(sizes), "sequences", "higher"))
        report("preempted", Metric(recomputed, "requests", "lower"))

    return serve
