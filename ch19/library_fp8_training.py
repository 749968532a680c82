"""Library: torchao's FP8 linear layers, each compiled, as its documentation advises."""
# needs: package torchao

import torch
from shared_decoder_block import NAMES, gradients
from torchao.float8 import CastConfig, Float8LinearConfig, convert_to_float8_training

from common.graph import captured

# Gradients in e4m3, as the optimized side has them: torchao's own choice, e5m2, is less exact than this pair admits.
CONFIG = Float8LinearConfig(cast_config_grad_output=CastConfig(target_dtype=torch.float8_e4m3fn))


def layer_of(w):
    """torchao's layer whose weight shares the memory of `w`."""
    layer = torch.nn.Linear(w.shape[1], w.shape[0], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(w.detach())
    return convert_to_float8_training(layer, config=CONFIG)


def prepare(x, weights, heads, loss_scale):
    layers = [[layer_of(block[name]) for name in NAMES] for block in weights]
    leaves = [tuple(layer.weight for layer in block) for block in layers]
    calls = {id(layer.weight): torch.compile(layer, dynamic=False) if x.is_cuda else layer for block in layers for layer in block}
    return captured(lambda: gradients(x, leaves, heads, loss_scale, lambda x, w: calls[id(w)](x)))
