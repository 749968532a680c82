"""The pairs of chapter 1: both sides right, tolerances with teeth, and each difference between the sides where it should be."""

import pytest
import torch
from torch.nn.functional import gelu

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.directives import read_directives
from tests.support.teeth import CPU, ROOT, TF32_BITS, accepts, rounded


def workload_of(pair):
    return load_workload(ROOT / f"ch01/workload_{pair}.py")


def step_of(file, values):
    return import_file(ROOT / "ch01" / file).prepare(**values)


@pytest.fixture(autouse=True)
def matmul_precision():
    """What a side sets in its own process is put back in this one."""
    before = torch.backends.cuda.matmul.fp32_precision
    yield
    torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.parametrize("mode", [torch.round, torch.trunc])
def test_tf32_is_right_for_the_optimized_side_and_wrong_for_the_baseline(mode):
    workload = workload_of("performance")
    values = Inputs(workload, workload.check_at[-1], 1, CPU, ROOT).values
    x, weights = values["x"].double(), [weight.double() for weight in values["weights"]]
    hidden = x
    for weight in weights[:-1]:
        hidden = gelu(rounded(hidden, TF32_BITS, mode) @ rounded(weight, TF32_BITS, mode))
    in_tf32 = rounded(hidden, TF32_BITS, mode) @ rounded(weights[-1], TF32_BITS, mode)
    expected = workload.reference(x, weights)
    assert accepts(workload.tolerance("optimized"), [in_tf32], [expected])
    assert not accepts(workload.tolerance("baseline"), [in_tf32], [expected])


def test_performance_sides_differ_in_the_precision_of_matmuls_whichever_ran_last():
    workload = workload_of("performance")
    values = Inputs(workload, workload.check_at[0], 1, CPU, ROOT).values
    steps = {side: step_of(f"{side}_performance.py", values) for side in ("baseline", "optimized")}
    for side, precision in [("baseline", "ieee"), ("optimized", "tf32"), ("baseline", "ieee")]:
        steps[side]()
        assert torch.backends.cuda.matmul.fp32_precision == precision


def test_only_the_baseline_reads_every_loss(monkeypatch):
    workload = workload_of("basic_benchmark")
    shape = workload.check_at[1]
    values = Inputs(workload, shape, 1, CPU, ROOT).values
    reads = []
    read = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda tensor: reads.append(tensor) or read(tensor))
    step_of("optimized_basic_benchmark.py", values)()
    assert reads == []
    step_of("baseline_basic_benchmark.py", values)()
    assert len(reads) == shape["batches"]
    assert read_directives(ROOT / "ch01/baseline_basic_benchmark.py").allows == ("sync",)
