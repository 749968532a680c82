"""A serving loop that is watched: it tells who came, and what each step gave."""

import torch

from common.serving.kv_blocks import KvBlocks
from common.serving.step import step

BLOCK = 16  # tokens


class Loop:
    """Continuous batching over `slots` sequences of at most `capacity` tokens."""

    def __init__(self, weights, config, slots, capacity, device):
        self._weights, self._config, self._slots, self._device = weights, config, slots, device
        self._blocks = KvBlocks(config, blocks=slots * -(-capacity // BLOCK), block_tokens=BLOCK, device=device)

    def serve(self, arrivals, emit, arrived, stepped):
        """Answer a trace. `arrived(requests)` is told who came; `stepped(phase, requests, done, surprisal)` what a step gave.

        `surprisal`, float32 [requests] on the device, is how unlikely each token was, in nats. The host has not waited for it.
        """
        waiting, running, last = arrivals.wait(), [], {}
        arrived(waiting)
        while waiting or running:
            free = self._slots - len(running)
            running, waiting = running + waiting[:free], waiting[free:]
            phase = "decode" if all(request.id in last for request in running) else "prefill"
            chunks = [last[request.id] if request.id in last else torch.tensor(request.prompt, device=self._device) for request in running]
            logits = step(self._weights, self._config, self._blocks, [request.id for request in running], chunks)
            likeliest, tokens = logits.float().log_softmax(-1).max(-1)
            done = emit(running, tokens, logits)
            stepped(phase, running, done, -likeliest)
            last = {request.id: token for request, token in zip(running, tokens.split(1), strict=True)}
            for request_id in done:
                self._blocks.release(request_id)
            running = [request for request in running if request.id not in done]
            come = arrivals.poll() if waiting or running else arrivals.wait()
            arrived(come)
            waiting += come
