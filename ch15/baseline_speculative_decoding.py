"""Baseline: a step of the target model for each token."""

from common.serving.batching import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, device)
