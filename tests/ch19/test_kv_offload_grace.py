"""ch19:kv_offload_grace on a CPU, where its memory is ordinary: it answers as the reference. A stand-in hears what a driver is asked."""

import ctypes
from types import SimpleNamespace

import pytest
import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.workload import call_by_name
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

CPU, GPU = torch.device("cpu"), torch.device("cuda", 1)


@pytest.fixture
def memory(monkeypatch):
    with modules_of(ROOT / "ch19", monkeypatch):
        yield import_file(ROOT / "ch19/shared_managed_memory.py")


@pytest.mark.parametrize("position", [0, 1, 2])
def test_answers_are_the_references(position, monkeypatch, tmp_path):
    with modules_of(ROOT / "ch19", monkeypatch):
        workload = load_workload(ROOT / "ch19/workload_kv_offload.py")
        shape = workload.check_at[position]
        inputs = Inputs(workload, shape, 1, CPU, tmp_path)
        side = import_file(ROOT / "ch19/optimized_kv_offload_grace.py")
        step = call_by_name(side.prepare, {**shape, **inputs.values}, "prepare")
        for seed in (2, 3):
            inputs.rewrite(seed)
            expected = call_by_name(workload.reference, {**shape, **upcast(inputs.values, torch.float32)}, "reference")
            torch.testing.assert_close(step().float(), expected, rtol=workload.rtol, atol=workload.atol)


def test_more_than_is_free_is_refused(memory, monkeypatch):
    monkeypatch.setattr(memory, "free_on_host", lambda: 1 << 20)
    with pytest.raises(MemoryError, match="found 1048576 bytes of the CPU free; expected the 1048577"):
        memory.ManagedMemory((1 << 20) + 1, GPU)


def test_free_memory_is_the_kernels(memory):
    assert 0 < memory.free_on_host() < 1 << 50


def test_memory_of_a_node_without_cpus_is_the_gpus(memory, tmp_path):
    sizes = {"MemTotal": "9000 kB", "MemFree": "500 kB", "Active(file)": "30 kB", "Inactive(file)": "4 kB", "HugePages_Free": "0"}
    for node, cpus in (("node0", "0-71"), ("node1", "")):
        (tmp_path / node).mkdir()
        (tmp_path / node / "cpulist").write_text(f"{cpus}\n")
        (tmp_path / node / "meminfo").write_text("".join(f"Node {node[-1]} {name}: {size}\n" for name, size in sizes.items()))
    assert memory.free_on_host(tmp_path) == 534 << 10
    assert memory.free_on_host(tmp_path / "none") > 1 << 20


def test_pages_are_zeroed_by_the_cpu_stay_there_and_are_freed(memory, monkeypatch):
    buffer, asked = ctypes.create_string_buffer(b"\1" * 64, 64), []

    def answer(name):
        def call(*arguments):
            asked.append((name, *[each.value if isinstance(each, ctypes._SimpleCData) else each for each in arguments[1:]]))
            if name == "cuMemAllocManaged":
                arguments[0]._obj.value = ctypes.addressof(buffer)
            return 0

        return call

    class Driver:
        def __getitem__(self, name):
            return answer(name)

    monkeypatch.setattr(memory, "ctypes", SimpleNamespace(**vars(ctypes) | {"CDLL": lambda name: Driver()}))
    held = memory.ManagedMemory(64, GPU)
    assert held.__cuda_array_interface__["data"] == (ctypes.addressof(buffer), False)
    assert buffer.raw == bytes(64)
    del held
    assert asked == [("cuMemAllocManaged", 64, 1), ("cuMemAdvise", 64, 3, -1), ("cuMemAdvise", 64, 5, 1), ("cuMemFree_v2",)]
