"""ch19:nvfp4_training: a turn changes no product, and the goal has a value before a side has trained."""

import math

import torch

from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import ROOT

LAYER = import_file(ROOT / "ch19/shared_nvfp4_linear.py")


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


def test_a_turn_is_orthogonal_and_products_of_turned_matrices_stay():
    turn = LAYER.hadamard(torch.tensor([0, 1, 1, 0] * 4))
    assert torch.allclose(turn @ turn.T, torch.eye(16), atol=1e-6)
    a, b = drawn(8, 64), drawn(12, 64)
    assert torch.allclose(LAYER.turned(a, turn) @ LAYER.turned(b, turn).T, a @ b.T, atol=1e-5)


def test_gradients_of_exact_products_are_those_of_torch():
    x, w, dy = drawn(2, 16, 32), drawn(48, 32), drawn(2, 16, 48)
    for turn in (None, LAYER.hadamard(torch.tensor([0, 1, 1, 0] * 4))):
        linear = LAYER.linear_of(lambda a, b: a @ b.T, turn)
        leaves = [x.clone().requires_grad_(), w.clone().requires_grad_()]
        found = torch.autograd.grad(linear(*leaves), leaves, dy)
        expected = torch.autograd.grad(torch.nn.functional.linear(*leaves), leaves, dy)
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one, other, atol=1e-4)


def test_before_a_side_has_trained_the_loss_is_that_of_a_guess():
    workload = load_workload(ROOT / "ch19/workload_nvfp4_training.py")
    assert workload.metrics()[workload.goal].value == math.log(256)
