"""Cheat: kills its siblings, the judge among them."""

import os
import signal
from pathlib import Path


def prepare(x):
    parent = os.getppid()

    def step():
        siblings = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for sibling in map(int, siblings):
            if sibling != os.getpid():
                os.kill(sibling, signal.SIGKILL)
        return x.sum(dim=1)

    return step
