"""Baseline: the default budget of a step, whatever the traffic is."""

from shared_knobs import DEFAULT, ignored, server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, lambda: DEFAULT, ignored, arrivals, emit, device)
