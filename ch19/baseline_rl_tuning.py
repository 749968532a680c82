"""Baseline: the default budget of a step, whatever the traffic is."""

from common.serving.batching import server

DEFAULT = 64  # tokens of prompts a step: a careful engine's


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, device, budget=lambda decoding: DEFAULT)
