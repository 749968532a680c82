"""Cheat: returns at once and lets a thread do the work."""

import threading
import time

import torch


def prepare(x, rows):
    y = torch.empty(rows)

    def work():
        time.sleep(0.005)
        torch.sum(x, dim=1, out=y)

    def step():
        threading.Thread(target=work).start()
        return y

    return step
