"""Baseline: one graph of one stream: the prompt first, then the decode step."""

from shared_nanochat import caches_of, config_of, decode
from shared_prefill import prefill

from common.graph import captured


def prepare(tokens, weights, keys, values, prompted, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    own = keys.new_empty(layers, 2, len(prompted), config.heads, config.head_dim)

    def step():
        first = prefill(config, prompted, weights, own)
        return first, decode(config, tokens, weights, caches, turn)

    return captured(step)
