"""Baseline: the default budget of a step, whatever the traffic is."""

from common.serving.batching import Batcher

DEFAULT = 64  # tokens of prompts a step: a careful engine's


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit, budget=lambda decoding: DEFAULT)
