"""The NUMA node on which a process runs, as sysfs tells it."""

import ctypes
import os

from common.python.machine.numa import nodes_of_this_core


def test_the_node_is_that_of_the_core(tmp_path):
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        core = ctypes.CDLL(None).sched_getcpu()
        (tmp_path / f"cpu{core}" / "node3").mkdir(parents=True)
        (tmp_path / f"cpu{core + 1}" / "node4").mkdir(parents=True)
        assert nodes_of_this_core(tmp_path) == [3]
    finally:
        os.sched_setaffinity(0, allowed)


def test_nobody_knows_where_the_kernel_tells_of_none(tmp_path):
    assert nodes_of_this_core(tmp_path) == []
