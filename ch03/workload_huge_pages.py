"""A shuffled batch of samples, collated into memory that is new each time, since whoever gets the batch keeps it."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, samples, values: {"dataset": rand.uniform(samples, values), "order": rand.permutation(samples)},
    outputs=lambda samples, values: {"batch": Spec((samples, values), torch.float32)},
    reference=lambda dataset, order: dataset[order],
    time_at={"samples": 8192, "values": 4096},
    cpu_at={"samples": 4096, "values": 4096},
    check_at=({"samples": 1, "values": 1}, {"samples": 67, "values": 1023}, {"samples": 1031, "values": 1024}),
    work=lambda samples, values: {"dram_read": 4 * samples * values, "dram_write": 4 * samples * values},
    rtol=0.0,  # values are copied
    atol=0.0,
    constants=("dataset",),
    clock="host",
    place="host",
)
