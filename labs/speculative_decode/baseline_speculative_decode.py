"""Baseline: one CUDA graph per token and slot, in bf16."""

from shared_self_draft import server


def prepare(weights, config, slots, prompt, longest, arrivals, emit, report, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, report, device, drafts=0)
