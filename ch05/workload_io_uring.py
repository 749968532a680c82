"""A batch of records from disk: some of those in a file, at places that a permutation gives."""
# needs: disk

import torch

from common import Spec, Workload
from common.disk_pace import disk


def inputs(rand, stored, records, record_bytes):
    return {"file": rand.file(stored * record_bytes), "wanted": rand.permutation(stored)[:records]}


def reference(file, wanted, record_bytes):
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8).view(-1, record_bytes)[wanted]


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda stored, records, record_bytes: {"batch": Spec((records, record_bytes), torch.uint8)},
    reference=reference,
    time_at={"stored": 65536, "records": 2048, "record_bytes": 4096},  # of 256 MiB, 8: to read all of them takes longer
    cpu_at={"stored": 32768, "records": 1024, "record_bytes": 4096},
    check_at=(
        {"stored": 2, "records": 1, "record_bytes": 1},
        {"stored": 700, "records": 513, "record_bytes": 4096},
        {"stored": 400, "records": 399, "record_bytes": 4099},
    ),
    work=lambda stored, records, record_bytes: {"storage_read": records * record_bytes},
    rtol=0.0,  # bytes are copied
    atol=0.0,
    clock="host",
    place="host",
    cache="cold",  # no page of the file is in the page cache when a timed step begins
    metrics=disk,
    ladder=("threads",),  # the queue without io_uring
)
