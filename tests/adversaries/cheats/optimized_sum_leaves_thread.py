"""Cheat: right, and its process cannot end by itself: a thread that is no daemon, and an exit handler, both wait for ever."""

import atexit
import threading
import time


def prepare(x):
    threading.Thread(target=time.sleep, args=(600,)).start()
    atexit.register(time.sleep, 600)
    return lambda: x.sum(dim=1)
