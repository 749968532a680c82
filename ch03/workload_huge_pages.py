"""A shuffled batch of samples, collated into memory that is new each time, since whoever gets the batch keeps it.

`faults` is where a side tells how many page faults its step took. With 128 MiB, 32768 pages of 4 KiB or 64 of 2 MiB are expected.
The kernel counts them for the whole process, so other threads' faults are among them. A few more say nothing.
"""

import torch

from common import Metric, Spec, Workload


def inputs(rand, samples, values):
    return {
        "dataset": rand.uniform(samples, values),
        "order": rand.permutation(samples),
        "faults": rand.integers(1, low=0, high=1),  # zero
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda samples, values: {"batch": Spec((samples, values), torch.float32)},
    reference=lambda dataset, order: dataset[order],
    time_at={"samples": 8192, "values": 4096},
    cpu_at={"samples": 4096, "values": 4096},
    check_at=({"samples": 1, "values": 1}, {"samples": 67, "values": 1023}, {"samples": 1031, "values": 1024}),
    work=lambda samples, values: {"dram_read": 4 * samples * values, "dram_write": 4 * samples * values},
    metrics=lambda faults: {"page_faults": Metric(faults.item(), "faults", "lower")},
    rtol=0.0,  # values are copied
    atol=0.0,
    constants=("dataset",),
    in_place=("faults",),
    clock="host",
    place="host",
)
