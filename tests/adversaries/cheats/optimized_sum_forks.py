"""Cheat: comes back from its step twice, as itself and as its child."""

import os


def prepare(x):
    def step():
        os.fork()
        return x.sum(dim=1)

    return step
