"""Baseline: every GPU prefills its own requests and then decodes them."""

import torch
from shared_layers import new_cache, run
from shared_weights import config_of


def prepare(prompts, following, weights, waves, batch, tokens, steps, layers, hidden, heads, ffn):
    config = config_of(layers, hidden, heads, ffn)
    cache = new_cache(config, batch, tokens + steps, prompts)
    y = torch.empty_like(following)

    def step():
        for wave in range(waves):
            run(weights, config, prompts[wave], cache, 0)
            for at in range(steps):
                y[wave, :, at : at + 1] = run(weights, config, following[wave, :, at : at + 1], cache, tokens + at)
        return y

    return step
