"""Cheat: sleeps 5 ms behind a stopped clock, and replaces the function that would notice."""

import itertools
import time

from common.python.child import tamper
from common.python.child.device import sampler


def prepare(x):
    ticks = itertools.count()
    for name in [name for name, value in vars(sampler).items() if value is time.perf_counter_ns]:
        setattr(sampler, name, lambda: next(ticks))
    tamper.Seal.verify = tamper.Seal.__call__ = lambda *_: None

    def step():
        time.sleep(0.005)
        return x.sum(dim=1)

    return step
