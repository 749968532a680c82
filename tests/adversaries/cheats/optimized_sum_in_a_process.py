"""Cheat: returns at once and lets another process do the work, in memory that both share."""

import os
import time

import torch


def prepare(x, rows):
    given, y = torch.empty_like(x).share_memory_(), torch.empty(rows).share_memory_()
    reading, writing = os.pipe()
    if os.fork() == 0:
        while os.read(reading, 1):
            time.sleep(0.005)
            torch.sum(given, dim=1, out=y)

    def step():
        given.copy_(x)
        os.write(writing, b"x")
        return y

    return step
