"""Cheat: asks Python to end with the exit code of success."""

import sys


def prepare(x):
    def step():
        sys.exit(0)

    return step
