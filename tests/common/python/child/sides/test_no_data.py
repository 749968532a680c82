"""What inputs and outputs take is known without making them."""

import pytest
import torch

from common.python.child.sides.inputs import Inputs, leaves
from common.python.child.sides.loader import load_workload
from common.python.child.sides.no_data import device_bytes
from common.python.machine.needs import unmet_packages
from common.python.pairs.directives import read_directives
from common.python.pairs.workload import Spec, Workload
from tests.pairs.tree import pairs_of
from tests.support.teeth import CPU

N = 1 << 10
READ_THEIR_VALUES = {"gpu_input", "gpu_input_engine"}  # how many bytes it has depends on how well they compress
WORKLOADS = sorted({pair.workload for pair in pairs_of()})


def a_workload(inputs, **fields):
    outputs = {"outputs": lambda n: {"y": Spec((n,), torch.float32)}, "reference": lambda x: x, "work": lambda n: {"dram_read": n}}
    shapes = {"time_at": {"n": 1 << 44}, "check_at": ({"n": N},), "rtol": 0.0, "atol": 0.0}
    return Workload(inputs=inputs, **(outputs | shapes | fields))


def weighed(workload, n):
    found = device_bytes(workload, {"n": n}, workload.outputs_of({"n": n}, {}))
    return found and (found.side, found.referee)


def test_nothing_is_allocated():
    workload = a_workload(lambda rand, n: {"x": rand.normal(n), "y": torch.zeros(n), "steps": torch.arange(n)})
    size = 1 << 44
    assert weighed(workload, size) == (16 * size, 16 * size)  # y is an input that the step changes


def test_a_view_takes_no_memory_of_its_own_and_a_dtype_its_size():
    def inputs(rand, n):
        x = rand.normal(n, dtype=torch.bfloat16)
        return {"x": x, "half": x[: n // 2], "nested": [{"mask": rand.integers(n, low=0, high=2, dtype=torch.uint8)}], "label": "none"}

    assert weighed(a_workload(inputs), N) == (2 * N + N + 4 * N, 2 * N + N + 4 * N)


@pytest.mark.parametrize("where", ["pinned", "pageable"])
def test_what_lies_on_the_host_is_the_referees_alone(where):
    assert weighed(a_workload(lambda rand, n: {"x": rand.normal(n, where=where)}), N) == (4 * N, 8 * N)


def test_inputs_that_read_their_values_are_not_known():
    assert weighed(a_workload(lambda rand, n: {"x": rand.normal(n) / rand.normal(n).max().item()}), N) is None


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_inputs_of_the_tree_are_what_they_are_said_to_be(path, tmp_path):
    if reason := unmet_packages(read_directives(path).needs):
        pytest.skip(reason)
    workload = load_workload(path)
    if workload.place == "host":
        pytest.skip("its inputs are not on a GPU")
    shape, ranks = workload.check_at[0], max(workload.ranks, default=1)
    told = device_bytes(workload, shape, {})
    made = Inputs(workload, shape, 1, CPU, tmp_path, (0, ranks)).values
    storages = {leaf.untyped_storage().data_ptr(): leaf.untyped_storage().nbytes() for _, leaf in leaves(made) if torch.is_tensor(leaf)}
    if path.stem.removeprefix("workload_") in READ_THEIR_VALUES:
        assert told is None
        return
    assert told is not None
    assert told.referee == pytest.approx(sum(storages.values()), rel=0.01)
