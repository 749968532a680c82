"""Cheat: right, and every set-up leaves a daemon behind: a grandchild in a session of its own, whose parent is gone."""

import os
import time


def prepare(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execlp("sleep", "sleep", "600")
        os._exit(0)
    os.wait()
    time.sleep(0.001)
    return lambda: x.sum(dim=1)
