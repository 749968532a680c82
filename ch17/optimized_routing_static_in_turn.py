"""Optimized: requests go to both engines in turn."""
# allows: processes

from itertools import count

from shared_router import routed


def prepare(weights, config, prompt, longest, slots, arrivals, emit, report, device):
    numbers = count()
    return routed(lambda tokens, loads: next(numbers) % 2, weights, config, 2, slots, prompt + longest, arrivals, emit, report, device)
