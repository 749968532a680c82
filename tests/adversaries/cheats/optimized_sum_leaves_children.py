"""Cheat: right, and every call leaves a child behind that sleeps for ten minutes."""

import subprocess


def prepare(x):
    def step():
        subprocess.Popen(["sleep", "600"])
        return x.sum(dim=1)

    return step
