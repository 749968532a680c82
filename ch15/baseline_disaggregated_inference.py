"""Baseline: prompts and decoded tokens share each step, which takes at most `budget` tokens of prompts (chunked prefill)."""

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit, budget=lambda decoding: budget)
