"""Cheat: kills the process that forked it, from which all others come."""

import os
import signal


def prepare(x):
    def step():
        os.kill(os.getppid(), signal.SIGKILL)
        return x.sum(dim=1)

    return step
