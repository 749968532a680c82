"""Baseline: prompts and decoded tokens share each step, so a new prompt holds up every running answer."""

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit)
