"""What the stand-ins for profilers share: they run the program that they are given, on the CPU, as nothing here brings a GPU."""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 120.0


def read_job(path):
    """What the program is to do, once it is given; ends the process if it never will be."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        told = file.read()
    if not told:
        sys.exit("no job")
    return json.loads(told)


def leave(mark, command):
    """Add a line, which ends with this process's id, to what the stand-ins of a row say of when they did what."""
    with Path(command[-1]).with_name("order.txt").open("a") as file:
        file.write(f"{mark} {os.getpid()}\n")


def wait_for(mark, command):
    """Wait until another stand-in has left `mark`; ends the process if none does."""
    order = Path(command[-1]).with_name("order.txt")
    end = time.monotonic() + LIMIT_S
    while not order.exists() or mark not in order.read_text():
        if time.monotonic() > end:
            sys.exit(f"{mark}: not in {LIMIT_S} s")
        time.sleep(0.01)


def run_program(command):
    """The exit code of the program, a profile_child, and the labels of its sides; with PROGRAM=skip what it would have left of itself."""
    job = Path(command[-1])
    told = read_job(job)
    job.write_text(json.dumps(told | {"device": "cpu"}))
    if os.environ["PROGRAM"] == "skip":
        Path(told["progress"]).write_text("done")
        code = 0
    else:
        code = subprocess.run(command).returncode
    job.write_text(json.dumps(told))
    return code, [side["label"] for side in told["sides"]]
