"""Cheat: asks for memory until there is none."""

import torch


def prepare(x):
    def step():
        hoard = []
        while True:
            hoard.append(torch.empty(1 << 28, dtype=torch.uint8))

    return step
