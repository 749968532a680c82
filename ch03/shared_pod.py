"""One pod: a process that runs the experts which the router chose for the tokens of its requests, by NumPy's BLAS."""

import mmap
import os

import numpy as np


def shared(memory, pods, tokens, hidden, width, experts, top):
    """The arrays that all pods see, in the file `memory` that has no name; it grows to hold them."""
    dtype = np.dtype(
        [
            ("up", "f4", (experts, hidden, 2 * width)),
            ("down", "f4", (experts, width, hidden)),
            ("x", "f4", (pods, tokens, hidden)),
            ("chosen", "i8", (pods, tokens, top)),
            ("gates", "f4", (pods, tokens, top)),
            ("y", "f4", (pods, tokens, hidden)),
        ]
    )
    os.ftruncate(memory, dtype.itemsize)
    return np.ndarray((), dtype, buffer=mmap.mmap(memory, dtype.itemsize))


def serve(memory, pod, orders, done, shape):
    """Answer a byte on the pipe `orders` by a byte on `done`, once the pod's tokens have been through their experts."""
    all_pods = shared(memory, **shape)
    x, chosen, gates, y = (all_pods[name][pod] for name in ("x", "chosen", "gates", "y"))
    while os.read(orders, 1):
        y[:] = 0
        for expert, (up, down) in enumerate(zip(all_pods["up"], all_pods["down"], strict=True)):
            tokens, slots = np.nonzero(chosen == expert)
            gate, linear = np.split(x[tokens] @ up, 2, axis=1)
            np.add.at(y, tokens, gates[tokens, slots, None] * ((gate / (1 + np.exp(-gate)) * linear) @ down))
        os.write(done, b"!")
