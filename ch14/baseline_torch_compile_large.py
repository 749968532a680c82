"""Baseline: eager PyTorch, whose products take most of the time at this width."""

from shared_decoder import Decoder


def prepare(x, weights, heads, tokens):
    decoder = Decoder(weights, heads, tokens)
    return lambda: decoder(x)
