"""A new request's whole prompt is computed in one step; the sequences that decode wait for that step."""

from common import Metric
from common.serving.batching import Batcher, everything


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    engine, sizes = Batcher(weights, config, slots, prompt + longest, device), []

    def serve():
        sizes.clear()
        engine.serve(arrivals, emit, everything, sizes.append)
        report("most_tokens", Metric(max(sizes), "tokens", "lower"))

    return serve
