"""ch19:fp8_training's library: what torchao is asked for, and that its layers train the pair's own weights. A module stands for torchao."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

HEADS, LOSS_SCALE = 2, 768.0


@pytest.fixture
def side(monkeypatch):
    """The library with a stand-in, whose converted layers multiply in BF16 and say with which configuration they were made."""

    def converted(layer, *, config):
        layer.config = config
        return layer

    package = ModuleType("torchao.float8")
    package.CastConfig = package.Float8LinearConfig = SimpleNamespace
    package.convert_to_float8_training = converted
    monkeypatch.setitem(sys.modules, "torchao", ModuleType("torchao"))
    monkeypatch.setitem(sys.modules, "torchao.float8", package)
    with modules_of(ROOT / "ch19", monkeypatch):
        yield import_file(ROOT / "ch19/library_fp8_training.py")


def test_gradients_are_of_the_weights_as_they_are_in_every_step(side, monkeypatch):
    blocks = sys.modules["shared_decoder_block"]
    draw = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(*shape, generator=draw).mul(shape[-1] ** -0.5).bfloat16()

    x, weights = drawn(2, 16, 32), [{name: drawn(*size) for name, size in blocks.sizes(32, 48).items()} for _ in range(2)]
    step = side.prepare(x, weights, HEADS, LOSS_SCALE)
    for _ in range(2):
        expected = blocks.gradients(x, blocks.leaves_of(weights), HEADS, LOSS_SCALE, torch.nn.functional.linear)
        for found, its in zip(step(), expected, strict=True):
            assert torch.equal(found, its)
        weights[1]["gate"].mul_(0.5)  # the next step reads these


def test_gradients_are_cast_to_e4m3_as_the_optimized_side_casts_them(side):
    layer = side.layer_of(torch.zeros(4, 2, dtype=torch.bfloat16))
    assert layer.config.cast_config_grad_output.target_dtype == torch.float8_e4m3fn
