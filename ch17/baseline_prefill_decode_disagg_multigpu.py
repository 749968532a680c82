"""Baseline: every GPU prefills its own requests and then decodes them."""

import torch
from shared_decoder import Decoder
from shared_layers import run
from shared_weights import config_of


def prepare(prompts, following, weights, waves, batch, tokens, steps, layers, hidden, heads, ffn):
    config = config_of(layers, hidden, heads, ffn)
    decoder = Decoder(weights, config, batch, tokens, steps, prompts)
    y = torch.empty_like(following)

    def step():
        for wave in range(waves):
            run(weights, config, prompts[wave], decoder.cache, 0)
            y[wave] = decoder.decode(following[wave])
        return y

    return step
