"""ch05:storage_cpu: the optimized side reads ahead in several threads, and each block once."""

import os
import threading

import pytest
import torch
from torch.overrides import TorchFunctionMode

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import CPU, ROOT

WORKLOAD = load_workload(ROOT / "ch05/workload_storage_cpu.py")
SHAPE = {"records": 2053, "record_bytes": 16384}  # nine blocks, the last a part of one


def test_threads_read_ahead_and_every_block_once(monkeypatch, tmp_path):
    side = import_file(ROOT / "ch05/optimized_storage_cpu.py")
    inputs = Inputs(WORKLOAD, SHAPE, 1, CPU, tmp_path)
    running = side.prepare(**inputs.values, **SHAPE)
    step = next(running)
    read, starts, threads = os.preadv, [], set()
    several = threading.Barrier(2, timeout=10)

    def reading(descriptor, buffers, start):
        if start < 2 * side.BLOCK:
            several.wait()  # the first two are read at the same time, or never
        starts.append(start)
        threads.add(threading.get_ident())
        return read(descriptor, buffers, start)

    monkeypatch.setattr(os, "preadv", reading)
    step()
    assert sorted(starts) == list(range(0, SHAPE["records"] * SHAPE["record_bytes"], side.BLOCK))
    assert threading.get_ident() not in threads
    running.close()


class Copies(TorchFunctionMode):
    """Whether the host waits for each copy that is started in this context."""

    def __init__(self):
        super().__init__()
        self.waited = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.copy_:
            self.waited.append(not (kwargs or {}).get("non_blocking", False))
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "waits"), [("baseline", True), ("optimized", False)])
def test_only_the_baseline_waits_for_each_copy(name, waits, tmp_path):
    """A copy that the host waits for is a `cudaStreamSynchronize` more, of which the optimized side claims one at the most."""
    side = import_file(ROOT / f"ch05/{name}_storage_cpu.py")
    running = side.prepare(**Inputs(WORKLOAD, SHAPE, 1, CPU, tmp_path).values, **SHAPE)
    step = running if callable(running) else next(running)
    with Copies() as copies:
        step()
    assert copies.waited == 9 * [waits]
