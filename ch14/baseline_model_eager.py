"""Baseline: eager PyTorch, one kernel launched per operator."""

from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = Decoder(weights, heads, tokens)
    return lambda: decoder(x)
