"""Baseline: a sound default: at most 512 tokens of prompts per step, whatever the traffic is."""

from common.serving.batching import Batcher

DEFAULT = 512  # tokens of prompts per step: enough that answers, not prompts, set the number of steps


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit, budget=lambda decoding: DEFAULT)
