"""Delayed scaling: scales are of earlier steps, so values that jump saturate for one step, and training is off for some."""

import os
import subprocess
import sys

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.chapters import modules_of
from tests.support.commands import ROOT_FIRST
from tests.support.teeth import ROOT

SHAPE = {"heads": 2, "loss_scale": 768.0}


@pytest.fixture
def delayed(monkeypatch):
    """shared_delayed_cast.py, and beside it what it shares its folder with."""
    with modules_of(ROOT / "ch19", monkeypatch):
        yield import_file(ROOT / "ch19/shared_delayed_cast.py")


def restored(scales, number, x):
    narrow, transposed, scale = scales.cast(number, x)
    assert torch.equal(narrow.t().float(), transposed.float())
    return narrow.float() * scale


def test_the_first_step_measures_and_later_ones_take_the_last_steps_scale(delayed):
    scales = delayed.DelayedScales(2, torch.device("cpu"))
    x = torch.tensor([[3.0, -7.0]]).bfloat16()
    assert torch.equal(restored(scales, 1, x), torch.tensor([[3.0, -7.0]]))
    scales.advance()
    assert scales.scales[1] == 7 / 448
    assert restored(scales, 1, x / 4)[0, 1] == -1.75
    assert scales.scales[1] == 7 / 448  # of the step before, though the values are a quarter


def test_values_that_jump_saturate_for_one_step(delayed):
    scales = delayed.DelayedScales(1, torch.device("cpu"))
    x = torch.tensor([[1.0, -4.0]]).bfloat16()
    restored(scales, 0, x)
    scales.advance()
    assert torch.equal(restored(scales, 0, 16 * x), torch.tensor([[4.0, -4.0]]))  # neither infinite nor NaN
    scales.advance()
    assert torch.equal(restored(scales, 0, 16 * x), torch.tensor([[16.0, -64.0]]))


def test_a_largest_value_is_forgotten_after_16_steps(delayed):
    scales = delayed.DelayedScales(1, torch.device("cpu"))
    found = []
    for step in range(18):
        scales.cast(0, torch.full((1, 1), 56.0 if step == 0 else 7.0).bfloat16())
        scales.advance()
        found.append(scales.scales.item() * 448)
    assert found == [56.0] * 16 + [7.0] * 2


def test_training_is_off_for_some_steps_after_weights_jump(monkeypatch):
    with modules_of(ROOT / "ch19", monkeypatch):
        side = import_file(ROOT / "ch19/optimized_fp8_training_delayed.py")
        blocks = sys.modules["shared_decoder_block"]
        draw = torch.Generator().manual_seed(0)

        def drawn(*shape):
            return torch.randn(*shape, generator=draw).mul(shape[-1] ** -0.5).bfloat16()

        x, weights = 6 * drawn(4, 16, 32), [{name: drawn(*size) for name, size in blocks.sizes(32, 48).items()}]
        step = side.prepare(x, weights, **SHAPE)

        def off():
            exact = blocks.gradients(x, blocks.leaves_of(weights), *SHAPE.values(), torch.nn.functional.linear)
            return max(((got - its).norm() / its.norm()).item() for got, its in zip(step()[1:], exact[1:], strict=True))

        assert off() < 0.12
        weights[0]["up"].mul_(16)
        found = [off() for _ in range(5)]
        assert min(found[:2]) > 0.5
        assert found[-1] < 0.2  # each step lets the jump reach the next tensor, whose history does not know it yet


KERNEL = """
import torch
from shared_delayed_cast import SIDE, cast_and_measure

rows, cols = 65, 130  # tiles at both edges are not full
x = torch.arange(rows * cols).remainder(15).sub(7).view(rows, cols).mul(64.0).bfloat16()  # every one a value of e4m3, by the scale too
x[64, 129] = -2048.0  # beyond the largest
scale, largest = torch.tensor(2.0), torch.tensor(3.0)
rowwise, colwise = (torch.zeros(size, dtype=torch.float8_e4m3fn) for size in ((rows, cols), (cols, rows)))
cast_and_measure[2, 3](x, scale, largest, rowwise, colwise, rows, cols)
assert largest == 2048
expected = (x.float() / 2).clamp(-448, 448)
assert torch.equal(rowwise.float(), expected)
assert torch.equal(colwise.float(), expected.T)
"""


def test_the_kernel_casts_transposes_and_measures_a_matrix_with_partial_tiles(tmp_path):
    """Values that need no rounding: Triton's interpreter truncates where a GPU rounds. Sides call the kernel on a GPU alone."""
    (tmp_path / "cast.py").write_text(KERNEL)
    here = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "ch19"), ROOT_FIRST])}
    done = subprocess.run([sys.executable, tmp_path / "cast.py"], env=here, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
