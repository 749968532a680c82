"""Chunked prefill: a step takes `budget` tokens, decoding first."""
# guess: 1.5x, in itl_ms.p95: a step with a whole prompt takes several plain steps, one with a chunk about one more

from shared_scheduler import server


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, report, device):
    return server(weights, config, slots, prompt + longest, budget, arrivals, emit, report, device)
