"""Cheat: a process, which is allowed, adds as soon as the harness has written new bytes, before the clock begins."""
# allows: processes

import os
import time

import numpy as np
import torch


def prepare(file, record, records):
    sums, written = torch.zeros(records, dtype=torch.int64).share_memory_(), torch.zeros(1, dtype=torch.int64).share_memory_()
    if os.fork() == 0:
        try:
            while seen := file.stat().st_mtime_ns:
                if seen != written.item():
                    torch.sum(torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, record), dim=1, out=sums)
                    written.fill_(seen)
                time.sleep(1e-4)
        finally:
            os._exit(0)  # the file is gone

    def step():
        while written.item() != file.stat().st_mtime_ns:
            time.sleep(1e-5)
        return sums.clone()

    return step
