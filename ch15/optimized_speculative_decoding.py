"""A small model drafts four tokens; one step checks them all."""
# predicts: baseline tpot_ms 4.77 = 1e3 * (13.69e9 / dram_read + 0.5e-3) on h100  (a step reads all weights)
# predicts: optimized tpot_ms 2.32 = 1e3 * (4 * 0.7e-3 + 13.69e9 / dram_read + 1.5e-3) / 3.69 on h100  (3.69 tokens per step, on a CPU)

import torch

from common import Metric
from common.serving.kv_blocks import KvBlocks
from common.serving.sampler import accept_greedy
from common.serving.step import step, step_over_all

BLOCK = 16  # tokens


def prepare(weights, config, draft_weights, draft_config, drafts, slots, prompt, longest, arrivals, emit, report, device):
    count = slots * -(-(prompt + longest + drafts) // BLOCK)
    blocks, draft_blocks = (KvBlocks(model, blocks=count, block_tokens=BLOCK, device=device) for model in (config, draft_config))

    def unread(cache, said, request):
        """The tokens of a request that a model has not read: the prompt at first, then what was said since."""
        return torch.tensor(said[request.id][cache.length(request.id) :], device=device)

    def draft(running, said):
        """The draft model's next tokens, [requests, drafts], one after another."""
        ids, chunks, drafted = [request.id for request in running], [unread(draft_blocks, said, request) for request in running], []
        for _ in range(drafts):
            drafted.append(step(draft_weights, draft_config, draft_blocks, ids, chunks).argmax(-1))
            chunks = drafted[-1].split(1)
        return torch.stack(drafted, dim=1)

    def verify(running, fresh, drafted):
        """The target's logits behind the last of `fresh` tokens and behind each draft: [requests, drafts + 1, vocabulary]."""
        chunks = [torch.cat([tokens, row]) for tokens, row in zip(fresh, drafted, strict=True)]
        logits = step_over_all(weights, config, blocks, [request.id for request in running], chunks)
        return torch.stack([part[-drafts - 1 :] for part in logits.split([len(chunk) for chunk in chunks])])

    def serve():
        waiting, running, said, steps, emitted = arrivals.wait(), [], {}, 0, 0
        while waiting or running:
            free = slots - len(running)
            said |= {request.id: list(request.prompt) for request in waiting[:free]}
            running, waiting = running + waiting[:free], waiting[free:]
            fresh = [unread(blocks, said, request) for request in running]  # copied before drafts are queued: a copy waits for them
            logits = verify(running, fresh, drafted := draft(running, said))
            tokens, counts = (answer.tolist() for answer in accept_greedy(drafted, logits))
            steps, emitted, done = steps + len(running), emitted + sum(counts), set()
            for position in range(drafts + 1):  # a token at a time, for an answer may be complete before its last accepted one
                if rows := [i for i, request in enumerate(running) if position < counts[i] and request.id not in done]:
                    done |= emit([running[i] for i in rows], [tokens[i][position] for i in rows], logits[rows, position])
            for request, row, accepted in zip(running, tokens, counts, strict=True):
                said[request.id] += row[:accepted]
                for cache in (blocks, draft_blocks):  # both forget the drafts that did not stand
                    cache.truncate(request.id, min(cache.length(request.id), len(said[request.id]) - 1))
                    if request.id in done:
                        cache.release(request.id)
            running = [request for request in running if request.id not in done]
            waiting += arrivals.poll() if waiting or running else arrivals.wait()
        report("accepted", Metric((emitted / steps - 1) / drafts, "share of drafts", "higher"))

    return serve
