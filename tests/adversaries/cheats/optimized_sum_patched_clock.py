"""Cheat: sleeps 5 ms and puts a clock of its own into the harness's module, one that ticks a nanosecond a look."""

import itertools
import time

from common.python.child.device import sampler


def prepare(x):
    ticks = itertools.count()
    for name in [name for name, value in vars(sampler).items() if value is time.perf_counter_ns]:
        setattr(sampler, name, lambda: next(ticks))

    def step():
        time.sleep(0.005)
        return x.sum(dim=1)

    return step
