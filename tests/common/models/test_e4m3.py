"""Products in e4m3 are off by no more than their rounding, and feed-forwards in e4m3 stay close to those in bf16."""

import dataclasses

import torch

from common.models.config import byte_lm
from common.models.decoder import init
from common.models.e4m3 import FeedForward, linear, quantized
from common.models.layers import feed_forward

CONFIG = dataclasses.replace(byte_lm(), hidden=64, layers=2, heads=1, kv_heads=1, intermediate=96)


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def test_values_of_e4m3_are_kept():
    exact = torch.tensor([[448.0, 1.5, -0.25, 0.0], [7.0, -3.5, 1.75, 0.0]]).repeat(1, 4)
    values, scale = quantized(exact)
    assert torch.equal(values.float() * scale, exact)


def test_a_product_is_off_by_its_rounding():
    x, w = drawn(5, 64).bfloat16(), drawn(32, 64).bfloat16()
    off = linear(x, quantized(w)).float() - x.float() @ w.float().T
    assert off.std() < 0.06 * (x.float() @ w.float().T).std()


def test_feed_forwards_are_close_and_keep_their_shape():
    weights = init(CONFIG, torch.Generator().manual_seed(2))
    x = drawn(2, 3, 64).bfloat16()
    for layer in range(CONFIG.layers):
        right = feed_forward(weights, CONFIG, layer, x)
        found = FeedForward(weights, CONFIG)({}, CONFIG, layer, x)
        assert found.shape == right.shape
        assert (found - right).float().std() < 0.1 * right.float().std()
