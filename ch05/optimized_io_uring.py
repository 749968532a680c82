"""Optimized: one thread keeps 64 reads in flight by io_uring."""
# needs: io_uring
# predicts: baseline 0.129 s = records * (60e-6 + 1e-6 + record_bytes / 2e9) on h100  (a disk that answers in 60 us: assumed)
# predicts: optimized 8.29 ms = records * (max(60e-6 / 64, record_bytes / 2e9) + 2e-6) on h100  (2 GB/s, 2 us of this thread: assumed)
# reason: 64 requests wait for the disk at once, and the baseline's wait one after the other
# allows: threads

import torch

from common.io_uring import Ring

IN_FLIGHT = 64


def prepare(file, wanted, records, record_bytes):
    batch = torch.empty(records, record_bytes, dtype=torch.uint8)
    ring = Ring(IN_FLIGHT)

    def step():
        with file.open("rb", buffering=0) as stream:
            ring.read(stream.fileno(), wanted.numpy() * record_bytes, batch.numpy())
        return batch

    yield step
    ring.close()
