"""What a killed run leaves in shared memory is swept by the next one, and what a living one holds is not."""

import os
import subprocess
import sys

from common.python.session.session import sweep


def test_the_sweep_takes_what_the_dead_left_and_nothing_else(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, held, other = (tmp_path / name for name in (f"benchmark_{dead.pid}_x", f"benchmark_{os.getpid()}_x", "benchmark_notes_x"))
    for folder in (left, held, other):
        folder.mkdir()
        (folder / "1_y").touch()
    sweep(tmp_path)
    assert not left.exists()
    assert (held / "1_y").exists()
    assert (other / "1_y").exists()
