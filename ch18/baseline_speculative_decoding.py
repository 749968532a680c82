"""Baseline: one CUDA graph per round: the model's step for all slots, a token for each, and the cache."""

from shared_speculation import server


def prepare(weights, config, draft_weights, draft_config, slots, prompt, longest, arrivals, emit, report, device):
    model = (weights, config, draft_weights, draft_config)
    return server(*model, slots, prompt + longest, arrivals, emit, report, device, depth=0)
