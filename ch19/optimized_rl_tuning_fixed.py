"""The budget of a sweep's best, fixed: what a bandit can reach."""
# guess: 2.8x, in output_tokens_per_s: 960 steps for prompts become about 300 with the largest budget

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit, budget=lambda decoding: budget)
