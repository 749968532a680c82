"""Baseline: one CUDA graph per round, which is one token per slot in bf16."""

from shared_self_draft import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, report, device, drafts=0)
