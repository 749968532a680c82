"""Baseline: requests go to the engines in turn (round-robin)."""
# allows: processes

from itertools import count

from shared_router import routed


class InTurn:
    def __init__(self):
        self.turns = count()

    def __call__(self, prompt_tokens, loads):
        return next(self.turns) % len(loads)


def prepare(weights, config, prompt, longest, engines, slots, arrivals, emit, report, device):
    return routed(InTurn(), weights, config, engines, slots, prompt + longest, arrivals, emit, report, device)
