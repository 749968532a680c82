"""Baseline: a step of the target model for each token."""

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit)
