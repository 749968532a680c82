"""The bandit's best budget, fixed: nothing is tuned."""
# guess: 1x, in output_tokens_per_s: a finding, for whole prompts need a few per cent fewer steps than the default's chunks

from common.serving.batching import Batcher


def prepare(weights, config, slots, prompt, longest, budget, arrivals, emit, device):
    engine = Batcher(weights, config, slots, prompt + longest, device)
    return lambda: engine.serve(arrivals, emit, budget=lambda decoding: budget)
