"""Baseline: eager PyTorch in bf16, a launch per operator."""

from shared_nanochat import caches_of, config_of, decode


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    return lambda: decode(config, tokens, weights, caches, turn)
