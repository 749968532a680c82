"""Baseline: prompts over 256 tokens go to the second engine."""
# allows: processes

from shared_router import routed

LONG = 256  # tokens


def choose(prompt_tokens, loads):
    return int(prompt_tokens > LONG)


def prepare(weights, config, prompt, longest, slots, arrivals, emit, report, device):
    return routed(choose, weights, config, 2, slots, prompt + longest, arrivals, emit, report, device)
