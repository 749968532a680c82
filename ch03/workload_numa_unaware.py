"""A batch in ordinary memory of the host, brought to the device through a pinned buffer and scaled by column."""

import os

import torch
from shared_numa import cpus_by_node

from common import Metric, Spec, Workload


def metrics():
    nodes = sum(bool(cpus) for cpus in cpus_by_node().values())
    return {
        "numa_nodes": Metric(nodes, "nodes with CPUs", "neither"),  # with 1, both sides do the same
        "cpus": Metric(len(os.sched_getaffinity(0)), "CPUs that the process may use", "neither"),  # fewer where a side bound itself
    }


WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"batch": rand.normal(rows, cols, where="pageable"), "scale": rand.normal(cols)},
    outputs=lambda rows, cols: {"scaled": Spec((rows, cols), torch.float32)},
    reference=lambda batch, scale: batch * scale,
    time_at={"rows": 16384, "cols": 4096},
    cpu_at={"rows": 1024, "cols": 4096},
    check_at=({"rows": 1, "cols": 1}, {"rows": 3, "cols": 65}, {"rows": 130, "cols": 1023}),
    work=lambda rows, cols: {"h2d": 4 * rows * cols, "dram_read": 4 * rows * cols, "dram_write": 8 * rows * cols},
    rtol=2**-24,  # one rounding
    atol=0.0,
    # The host clock would run the process on one core of the harness's choice, which is what this pair is about. With this one, and
    # pageable memory, launch latency and the copy on the host are in the time.
    clock="device",
    metrics=metrics,
)
