"""Baseline: prompts and decoded tokens share each step, so a new prompt holds up every running answer."""

from common.serving.batching import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, device)
