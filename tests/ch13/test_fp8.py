"""The pairs in FP8 on a CPU, where products of e4m3 are slow and right; what scales do with values beyond the calibration's."""

import torch

from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import ROOT, assert_accepts

shared = import_file(ROOT / "ch13/shared_fp8.py")


def test_a_side_that_says_it_needs_a_gpu_is_within_its_tolerance():
    workload = load_workload(ROOT / "ch13/workload_precisionfp8_te.py")
    small, _, deep = workload.check_at
    for shape in (small, deep):
        assert_accepts(workload, "ch13/optimized_precisionfp8_te.py", shape)


def test_the_largest_value_is_the_largest_of_e4m3():
    values = torch.tensor([[0.5, -7.0], [3.0, 1.0]], dtype=torch.bfloat16)
    assert shared.quantized(values, shared.scale_of(values)).float().tolist()[0][1] == -shared.LARGEST


def test_a_value_beyond_the_calibration_is_clamped_and_no_nan():
    scale = shared.scale_of(torch.tensor([[1.0]], dtype=torch.bfloat16))
    beyond = torch.tensor([[5.0, -5.0]], dtype=torch.bfloat16)
    assert shared.quantized(beyond, scale).float().tolist() == [[shared.LARGEST, -shared.LARGEST]]
