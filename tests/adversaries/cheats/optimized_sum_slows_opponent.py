"""Cheat: a thread of it stops all other processes of the run for 5 of every 6 ms."""

import os
import signal
import threading
import time
from pathlib import Path


def prepare(x):
    parent = os.getppid()

    def disturb():
        while True:
            others = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            for number, seconds in ((signal.SIGSTOP, 0.005), (signal.SIGCONT, 0.001)):
                for pid in others:
                    if int(pid) != os.getpid():
                        os.kill(int(pid), number)
                time.sleep(seconds)

    threading.Thread(target=disturb, daemon=True).start()
    return lambda: x.sum(dim=1)
