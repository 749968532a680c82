"""Baseline: each step is one eager forward over whatever there is, new prompts and decoded tokens together."""

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit)
