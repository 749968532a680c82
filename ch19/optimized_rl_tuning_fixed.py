"""The budget of a sweep's best, fixed: what a bandit can reach."""
# guess: 2.8x, in output_tokens_per_s: 960 steps for prompts become about 300 with the largest budget

from common.serving.batching import server


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, device):
    return server(weights, config, slots, prompt + longest, arrivals, emit, device, budget=lambda decoding: budget)
