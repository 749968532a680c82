"""ch16:gptq: one token tells how much more exact a matrix is, whichever it is."""

import math
import statistics

import pytest
import torch

from common.python.child.sides.inputs import Rand
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

SHAPE = {"k": 256, "rows": 512, "tokens": 2048, "sequences": 1}
SEEDS = 16
UNITS = 24  # the most of a row


@pytest.fixture
def gains(monkeypatch, tmp_path):
    """By how much the error of rounding to nearest exceeds GPTQ's, a logarithm for each token that a seed draws."""
    with modules_of(ROOT / "ch16", monkeypatch):
        from shared_gptq import gptq
        from shared_int4 import nearest, restored
        from workload_gptq import inputs

        drawn = [inputs(Rand(seed, torch.device("cpu"), tmp_path), **SHAPE) for seed in range(SEEDS)]
        weight = drawn[0]["weight"].float()
        wrong = [restored(codes) - weight for codes in (nearest(weight), gptq(weight, drawn[0]["samples"]))]
        errors = [[(each["x"] @ off.T).norm().item() for off in wrong] for each in drawn]
    return [math.log(of_nearest / of_gptq) for of_nearest, of_gptq in errors]


def test_the_gain_depends_little_on_the_token(gains):
    """A row's interval has to be within 2.5 % of its gain; of 24 units it is 2.1 deviations over the root of 24 wide, to either side."""
    assert 2.07 * statistics.stdev(gains) / UNITS**0.5 < 0.025
    assert statistics.fmean(gains) > math.log(1.3)
