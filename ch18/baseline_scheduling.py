"""A new request's whole prompt is computed in one step; the sequences that decode wait for that step."""

from common import Metric
from common.serving.batching import everything, server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    sizes = []
    serve = server(weights, config, slots, prompt + longest, arrivals, emit, device, budget=everything, stepped=sizes.append)

    def served():
        sizes.clear()
        serve()
        report("most_tokens", Metric(max(sizes), "tokens", "lower"))

    return served
