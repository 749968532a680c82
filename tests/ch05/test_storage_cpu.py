"""ch05:storage_cpu: the optimized side reads ahead in several threads, and each block once."""

import os
import threading

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
