"""Chunked prefill: a step takes `budget` tokens, decoding first."""
# guess: 1.5x, in itl_ms.p95: a step with a whole prompt takes several plain steps, one with a chunk about one more

from common import Metric
from common.serving.batching import server


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, report, device):
    def of_prompts(decoding):
        return max(budget - decoding, 1)

    sizes = []
    serve = server(weights, config, slots, prompt + longest, arrivals, emit, device, budget=of_prompts, stepped=sizes.append)

    def served():
        sizes.clear()
        serve()
        report("most_tokens", Metric(max(sizes), "tokens", "lower"))

    return served
