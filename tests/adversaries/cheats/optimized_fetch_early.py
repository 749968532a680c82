"""Cheat: a thread copies the host's input to the device as soon as its last element changes, before the clock starts."""

import threading
import time

import torch


def prepare(x):
    aside, there = torch.cuda.Stream(), torch.empty(x.shape, device="cuda")
    y = torch.empty_like(there)
    fetching, fetched = threading.Lock(), None

    def fetch():
        nonlocal fetched
        with fetching:
            if (last := float(x[-1, -1])) != fetched:
                fetched = last
                with torch.cuda.stream(aside):
                    there.copy_(x, non_blocking=True)
                aside.synchronize()

    def watch():
        while True:
            fetch()
            time.sleep(1e-5)

    def step():
        fetch()  # where the thread had no time for it
        return torch.mul(there, 2, out=y)

    threading.Thread(target=watch, daemon=True).start()
    return step
