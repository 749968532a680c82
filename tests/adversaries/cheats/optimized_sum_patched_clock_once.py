"""Cheat: sleeps 5 ms and forges the one look at the clock that follows while it is timed; the forged clock puts the true one back."""

import gc
import time

from common.python.child.device import sampler

now = time.perf_counter_ns
NAMES = [name for name, value in vars(sampler).items() if value is now]


def put(clock):
    for name in NAMES:
        setattr(sampler, name, clock)


def prepare(x):
    def step():
        begin = now()
        time.sleep(0.005)
        if not gc.isenabled():  # the harness switches the collector off while it times
            put(lambda: put(now) or begin + 1000)
        return x.sum(dim=1)

    return step
