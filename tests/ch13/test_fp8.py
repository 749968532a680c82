"""The pairs in FP8 on a CPU, where products of e4m3 are slow and right; what scales do with values beyond the calibration's."""

import contextlib
import sys
import types

import pytest
import torch

from common.python.child.sides.loader import import_file, load_workload
from common.python.machine.needs import unmet_packages
from common.python.pairs.directives import read_directives
from tests.support.teeth import ROOT, assert_accepts

shared = import_file(ROOT / "ch13/shared_fp8.py")


@pytest.mark.parametrize("side", ["optimized_precisionfp8_te", "baseline_fp8_static", "optimized_fp8_static"])
def test_a_side_that_says_it_needs_a_gpu_is_within_its_tolerance(side):
    """Uncompiled: compiling for a CPU takes minutes, and says little of what a GPU runs."""
    workload = load_workload(ROOT / f"ch13/workload_{side.partition('_')[2]}.py")
    small, _, deep = workload.check_at
    with torch.compiler.set_stance("force_eager"):
        for shape in (small,) if "samples" in workload.constants else (small, deep):  # 512 samples take minutes at the deep one
            assert_accepts(workload, f"ch13/{side}.py", shape)


def test_the_largest_value_is_the_largest_of_e4m3():
    values = torch.tensor([[0.5, -7.0], [3.0, 1.0]], dtype=torch.bfloat16)
    assert shared.quantized(values, shared.scale_of(values)).float().tolist()[0][1] == -shared.LARGEST


def test_a_value_beyond_the_calibration_is_clamped_and_no_nan():
    scale = shared.scale_of(torch.tensor([[1.0]], dtype=torch.bfloat16))
    beyond = torch.tensor([[5.0, -5.0]], dtype=torch.bfloat16)
    assert shared.quantized(beyond, scale).float().tolist() == [[shared.LARGEST, -shared.LARGEST]]


TE_SIDE = "ch13/optimized_precisionfp8_te_transformer_engine.py"


def test_the_variant_of_transformer_engine_says_which_package_it_needs():
    directives = read_directives(ROOT / TE_SIDE)
    assert directives.needs == ("fp8", "package transformer_engine")
    assert unmet_packages(directives.needs) in ("", "needs the Python package transformer_engine; not installed")


class Layer(torch.nn.Module):
    """A stand-in for Transformer Engine's: FP8 within an autocast alone, rows by eights, a weight that is kept from the first call on."""

    inside = False

    def __init__(self, columns, rows, bias, params_dtype, device):
        super().__init__()
        assert not bias
        self.weight = torch.nn.Parameter(torch.empty(rows, columns, dtype=params_dtype, device=device))

    def forward(self, x, is_first_microbatch):
        assert Layer.inside, "found a call outside of an autocast"
        assert x.shape[0] % 8 == 0, f"found {x.shape[0]} rows"
        if is_first_microbatch:
            self.kept = shared.packed([self.weight])[0]
        (w, scale_w), scale = self.kept, shared.scale_of(x)
        return torch._scaled_mm(shared.quantized(x, scale), w.T, scale, scale_w, out_dtype=torch.bfloat16)


@contextlib.contextmanager
def autocast(enabled, recipe):
    assert (enabled, recipe) == (True, "e4m3")
    Layer.inside = True
    yield
    Layer.inside = False


@pytest.mark.parametrize("tokens", [16, 13])
def test_the_variant_of_transformer_engine_is_right_on_a_stand_in(tokens, monkeypatch):
    recipes = types.SimpleNamespace(Float8CurrentScaling=lambda fp8_format: fp8_format, Format=types.SimpleNamespace(E4M3="e4m3"))
    layers = types.SimpleNamespace(Linear=Layer, autocast=autocast)
    for name in ("", ".common"):
        monkeypatch.setitem(sys.modules, f"transformer_engine{name}", types.ModuleType(f"transformer_engine{name}"))
    monkeypatch.setitem(sys.modules, "transformer_engine.pytorch", layers)
    monkeypatch.setattr(sys.modules["transformer_engine"], "pytorch", layers, raising=False)
    monkeypatch.setitem(sys.modules, "transformer_engine.common.recipe", recipes)
    workload = load_workload(ROOT / "ch13/workload_precisionfp8_te.py")
    assert_accepts(workload, TE_SIDE, workload.check_at[0] | {"tokens": tokens})
