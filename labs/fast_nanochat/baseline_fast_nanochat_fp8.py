"""Baseline: compiled, and one graph launch; weights in bf16."""

import torch
from shared_nanochat import caches_of, config_of, decode

from common.graph import captured


def prepare(tokens, weights, keys, values, layers, hidden, vocabulary):
    config = config_of(layers, hidden, vocabulary)
    caches, turn = caches_of(config, keys, values)
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(config, tokens, weights, caches, turn))
