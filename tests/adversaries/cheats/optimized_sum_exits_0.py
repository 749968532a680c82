"""Cheat: ends its process at once, with the exit code of success."""

import os


def prepare(x):
    def step():
        os._exit(0)

    return step
