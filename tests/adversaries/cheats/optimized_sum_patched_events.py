"""Cheat: sleeps 5 ms and makes every CUDA event say that a nanosecond went by."""

import time

import torch


def prepare(x):
    torch.cuda.Event.elapsed_time = lambda *_: 1e-6
    torch.cuda.synchronize = lambda *_: None

    def step():
        time.sleep(0.005)
        return x.sum(dim=1)

    return step
