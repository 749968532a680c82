"""Cheat: sleeps 5 ms, walks up the stack to the list of samples, and makes every earlier one a nanosecond."""

import dataclasses
import sys
import time


def prepare(x):
    def step():
        time.sleep(0.005)
        frame = sys._getframe()
        while frame:
            samples = frame.f_locals.get("samples", [])
            samples[:] = [dataclasses.replace(sample, ns=1.0) for sample in samples]
            frame = frame.f_back
        return x.sum(dim=1)

    return step
