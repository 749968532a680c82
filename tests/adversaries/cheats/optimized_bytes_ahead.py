"""Cheat: a thread, which is allowed, adds as soon as the harness has written new bytes, before the clock begins."""
# allows: threads

import threading
import time

import numpy as np
import torch


def prepare(file, record):
    known = {}

    def add():
        written = file.stat().st_mtime_ns
        if written not in known:
            sums = torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, record).sum(dim=1)
            known.clear()
            known[written] = sums
        return known.get(written)

    def watch():
        while file.exists():
            add()
            time.sleep(1e-4)

    threading.Thread(target=watch, daemon=True).start()

    def step():
        while (sums := add()) is None:
            pass
        return sums.clone()

    return step
