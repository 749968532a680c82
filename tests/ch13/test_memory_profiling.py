"""The demo's reading of an allocator's trace: bytes in use, their peak, and the lines that hold them; on a CPU it says what it lacks."""

import subprocess
import sys
import weakref
from types import SimpleNamespace

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


def test_what_a_step_returns_is_alive_when_the_snapshot_is_taken(monkeypatch, tmp_path):
    """Else its gradients are drawn as temporary."""
    demo, alive, seen = import_file(CHAPTER / "memory_profiling.py"), weakref.WeakSet(), []

    class Answer:
        def __init__(self):
            alive.add(self)

    side = SimpleNamespace(prepare=lambda *_arguments: Answer)
    monkeypatch.setattr(demo, "load_workload", lambda _path: SimpleNamespace(timed_shapes={"": {}}))
    monkeypatch.setattr(demo, "Inputs", lambda *_arguments: SimpleNamespace(values={}))
    monkeypatch.setattr(demo, "load_side", lambda *_arguments: side)
    for name in ("memory_allocated", "synchronize"):
        monkeypatch.setattr(demo.torch.cuda, name, lambda: 7)
    monkeypatch.setattr(demo.torch.cuda.memory, "_record_memory_history", lambda **_options: None)
    monkeypatch.setattr(demo.torch.cuda.memory, "_dump_snapshot", lambda _path: seen.append(len(alive)))
    monkeypatch.setattr(demo.torch.cuda.memory, "_snapshot", dict)
    assert demo.record("baseline", tmp_path) == (7, {})
    assert (seen, len(alive)) == ([1], 0)
