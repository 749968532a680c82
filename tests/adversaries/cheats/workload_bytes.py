"""Sum the bytes of every record of a file: work of the host, which a side may share among threads and processes of its own."""

import numpy as np
import torch

from common import Spec, Workload


def reference(file, record):
    return torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, record).sum(dim=1)


WORKLOAD = Workload(
    inputs=lambda rand, records, record: {"file": rand.file(records * record)},
    outputs=lambda records, record: {"sums": Spec((records,), torch.int64)},
    reference=reference,
    time_at={"records": 32, "record": 65536},
    cpu_at={"records": 32, "record": 65536},
    check_at=({"records": 3, "record": 65}, {"records": 64, "record": 192}),
    work=lambda records, record: {"dram_read": records * record},
    rtol=0.0,  # integers
    atol=0.0,
    clock="host",
    place="host",
    cache="hot",
)
