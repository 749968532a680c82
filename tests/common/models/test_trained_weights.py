"""The trained models of the tree are those of their presets, and predict Python source better than chance by far."""

import inspect
import json

import pytest
import torch
from torch.nn import functional

from common.models.decoder import forward, shapes
from common.models.train_byte_lm import PRESETS
from common.python.child.sides.assets import ASSETS, REGISTRY, read_asset
from common.tensor_files import read_tensors

TRAINED = sorted(PRESETS.keys() & json.loads((ASSETS / REGISTRY).read_text()).keys())


@pytest.fixture(params=TRAINED)
def trained(request):
    return PRESETS[request.param](), read_tensors(read_asset(request.param).data, torch.device("cpu"))


def test_the_weights_are_of_the_presets_shapes_and_dtype(trained):
    config, weights = trained
    assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == shapes(config)
    assert {tensor.dtype for tensor in weights.values()} == {config.dtype}


def test_python_source_is_predicted(trained):
    config, weights = trained
    tokens = torch.tensor(list(inspect.getsource(json).encode()[:512]))
    scores = forward({name: tensor.float() for name, tensor in weights.items()}, config, tokens)
    assert functional.cross_entropy(scores[:-1], tokens[1:]) < 2.5  # nats a byte, of ln 256 = 5.5
