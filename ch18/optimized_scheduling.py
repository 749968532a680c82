"""Chunked prefill: a step takes `budget` tokens, decoding first."""
# guess: 1.5x, in itl_ms.p95: a step with a whole prompt takes several plain steps, one with a chunk about one more

from common import Metric
from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, report, device):
    engine, sizes = Batcher(weights, config, slots, prompt + longest, device), []

    def of_prompts(decoding):
        return max(budget - decoding, 1)

    def serve():
        sizes.clear()
        engine.serve(arrivals, emit, of_prompts, sizes.append)
        report("most_tokens", Metric(max(sizes), "tokens", "lower"))

    return serve
