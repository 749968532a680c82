"""Baseline: requests go to the engines in turn (round-robin)."""
# allows: processes

from itertools import count

from shared_router import routed


def prepare(weights, config, prompt, longest, engines, slots, arrivals, emit, report, device):
    turns = count()
    return routed(
        lambda _, loads: next(turns) % len(loads), weights, config, engines, slots, prompt + longest, arrivals, emit, report, device
    )
