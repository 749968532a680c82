"""Cheat: finds the socket on which the harness listens and says what the harness would like to hear."""

import json
import os
import socket
import struct
from pathlib import Path


def prepare(x):
    answer = json.dumps({"kind": "timed", "nonce": "0" * 16, "samples_ns": [1.0], "picks": [], "notes": []}).encode()

    def step():
        for descriptor in list(Path("/proc/self/fd").iterdir()):
            try:
                with socket.socket(fileno=os.dup(int(descriptor.name))) as found:
                    found.sendall(struct.pack("!I", len(answer)) + answer)
            except OSError:
                continue
        return x.sum(dim=1)

    return step
