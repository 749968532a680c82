"""Optimized: the file is read front to back in large aligned requests, at the disk's bandwidth; the shuffle is a copy in memory."""
# expects: 20x, a record is 60 us of latency and 1 us of call against 2 us at 2 GB/s and 1 us of copy
# reason: a request of 1024 records waits for the disk once, 1024 requests wait 1024 times

import os

import torch

REQUEST = 4 << 20  # bytes


def prepare(file, order, records, record_bytes):
    stored = torch.empty(records, record_bytes, dtype=torch.uint8)
    epoch = torch.empty_like(stored)

    def step():
        window = stored.numpy().reshape(-1)
        with file.open("rb", buffering=0) as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            for start in range(0, window.size, REQUEST):
                os.preadv(stream.fileno(), [window[start : start + REQUEST]], start)
        return torch.index_select(stored, 0, order, out=epoch)

    return step
