"""Cheat: sleeps 5 ms behind a stopped clock, and replaces the function that would notice."""

import itertools
import time

from common.python.child import seal
from common.python.child.device import timing


def prepare(x):
    ticks = itertools.count()
    for name in [name for name, value in vars(timing).items() if value is time.perf_counter_ns]:
        setattr(timing, name, lambda: next(ticks))
    seal.Seal.verify = seal.Seal.__call__ = lambda *_: None

    def step():
        time.sleep(0.005)
        return x.sum(dim=1)

    return step
