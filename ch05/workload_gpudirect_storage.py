"""One shuffled epoch from disk on the device: every record of a file, in the order that a permutation gives."""
# needs: disk
# baseline: ch05/optimized_storage_cpu.py

import numpy as np
import torch

from common import Spec, Workload
from common.disk_pace import disk


def inputs(rand, records, record_bytes):
    return {"file": rand.file(records * record_bytes), "order": rand.permutation(records)}


def reference(file, order, record_bytes):
    return torch.from_numpy(np.fromfile(file, dtype=np.uint8)).to(order.device).view(-1, record_bytes)[order]


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda records, record_bytes: {"epoch": Spec((records, record_bytes), torch.uint8)},
    reference=reference,
    time_at={"records": 8192, "record_bytes": 16384},
    check_at=({"records": 2, "record_bytes": 1}, {"records": 1031, "record_bytes": 4096}, {"records": 2053, "record_bytes": 4099}),
    work=lambda records, record_bytes: {"storage_read": records * record_bytes, "h2d": records * record_bytes},
    rtol=0.0,  # bytes are copied
    atol=0.0,
    clock="host",
    cache="cold",  # no page of the file is in the page cache when a timed step begins
    metrics=disk,
)
