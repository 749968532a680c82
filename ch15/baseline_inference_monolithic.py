"""Baseline: each step is one eager forward over whatever there is, new prompts and decoded tokens together."""

from common.serving.batching import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, device)
