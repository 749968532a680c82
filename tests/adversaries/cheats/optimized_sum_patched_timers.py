"""Cheat: sleeps 5 ms and stops every clock that Python and torch have."""

import time

import torch

sleep = time.sleep


class Event:
    """An event that says that no time went by."""

    def __init__(self, **_):
        self.record = self.synchronize = lambda *_: None
        self.elapsed_time = lambda _: 1e-6


def prepare(x):
    time.perf_counter_ns = time.monotonic_ns = time.time_ns = lambda: 0
    time.perf_counter = time.monotonic = time.time = lambda: 0.0
    torch.cuda.Event = Event

    def step():
        sleep(0.005)
        return x.sum(dim=1)

    return step
