"""The demo's reading of an allocator's trace: bytes in use, their peak, and the lines that hold them; on a CPU it says what it lacks."""

import subprocess
import sys

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch13"
trace = import_file(CHAPTER / "shared_memory_trace.py")


def event(action, addr, size, line=1):
    frames = [
        {"filename": "/torch/nn.py", "line": 9, "name": "linear"},
        {"filename": f"{CHAPTER}/shared_block.py", "line": line, "name": "block"},
    ]
    return {"action": action, "addr": addr, "size": size, "frames": frames}


EVENTS = [
    event("alloc", 1, 100, line=5),
    event("segment_alloc", 1, 4000),
    event("alloc", 2, 300, line=6),
    event("free_requested", 1, 100),
    event("free_completed", 1, 100),
    event("alloc", 1, 50, line=7),
]


def test_bytes_in_use_follow_allocations_and_requests_to_free():
    assert trace.in_use(1000, EVENTS) == ([1100, 1100, 1400, 1300, 1300, 1350], 2)


def test_the_lines_at_the_peak_are_of_blocks_that_are_alive_there():
    assert trace.lines_at(EVENTS, 2) == [("shared_block.py:6 block", 300), ("shared_block.py:5 block", 100)]
    assert trace.lines_at(EVENTS, 5) == [("shared_block.py:6 block", 300), ("shared_block.py:7 block", 50)]


def test_without_a_gpu_the_demo_says_so():
    command = [sys.executable, str(CHAPTER / "memory_profiling.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env={"PYTHONPATH": str(PROJECT_ROOT), "CUDA_VISIBLE_DEVICES": ""}
    )
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "ch13/memory_profiling.py: found no CUDA device; expected one, whose allocations can be recorded\n"
