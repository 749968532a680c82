"""Memory over time by category: from a snapshot in the format of `torch.cuda.memory._snapshot`, and the drawing of it."""

import pickle
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch13"
categories = import_file(CHAPTER / "shared_memory_categories.py")
drawing = import_file(CHAPTER / "shared_memory_picture.py")
GB = 1 << 30
FORWARD = [
    {"filename": "??", "line": 0, "name": "at::native::empty_cuda"},
    {"filename": f"{CHAPTER}/shared_block.py", "line": 19, "name": "block"},
    {"filename": "/torch/utils/checkpoint.py", "line": 500, "name": "checkpoint"},
]
ENGINE = [{"filename": "??", "line": 0, "name": "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask>)"}]
AGAIN = [*FORWARD[:2], {"filename": "/torch/utils/checkpoint.py", "line": 1200, "name": "recompute_fn"}, *ENGINE]


def event(action, addr, size, time_us, frames=()):
    more = {"stream": 0, "time_us": time_us, "pool_id": (0, 0)}
    return {"action": action, "addr": addr, "size": size * GB, "frames": list(frames)} | more


EVENTS = [
    event("segment_alloc", 100, 8, 1000, FORWARD),
    event("alloc", 100, 2, 1000, FORWARD),  # an activation
    event("alloc", 200, 1, 2000, FORWARD),
    event("free_requested", 200, 1, 3000),
    event("free_completed", 200, 1, 3000),
    event("alloc", 200, 3, 5000, AGAIN),
    event("alloc", 300, 1, 6000, ENGINE),  # a temporary
    event("alloc", 400, 1, 7000, ENGINE),  # a gradient: nothing frees it
    event("free_requested", 300, 1, 8000),
    event("free_requested", 200, 3, 8000),
    event("free_requested", 100, 2, 9000),
    event("free_requested", 50, 1, 11000),  # from before the step
    event("snapshot", 0, 0, 11000),
]


def block(address, size, state):
    return {"address": address, "size": size * GB + 512, "requested_size": size * GB, "state": state, "frames": []}


def snapshot():
    """Behind EVENTS: weights of 4 and a gradient of 1, on device 0."""
    blocks = [block(0, 4, "active_allocated"), block(50, 1, "inactive"), block(400, 1, "active_allocated")]
    segment = {"device": 0, "address": 0, "total_size": 16 * GB, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0)}
    of_others = segment | {"device": 1, "blocks": [block(0, 9, "active_allocated")]}
    return {"segments": [segment | {"blocks": blocks}, of_others], "device_traces": [EVENTS, []]}


def test_bytes_by_category():
    states, times, clocked = categories.over_time(snapshot())
    rows = [[state[category] / GB for category in drawing.CATEGORIES] for state in states]
    assert rows == [
        [5, 0, 2, 0, 0],
        [5, 0, 3, 0, 0],
        [5, 0, 2, 0, 0],
        [5, 0, 2, 3, 0],
        [5, 0, 2, 3, 1],
        [5, 1, 2, 3, 1],
        [5, 1, 2, 3, 0],
        [5, 1, 2, 0, 0],
        [5, 1, 0, 0, 0],
        [4, 1, 0, 0, 0],
    ]
    assert clocked
    assert times == [0, 1, 2, 4, 5, 6, 7, 7, 8, 10]


def test_a_column_shows_the_most_of_its_time_or_what_was_there_before():
    states, times, _ = categories.over_time(snapshot())
    totals = [sum(state.values()) / GB for state in drawing.columns_of(states, times)]
    assert totals == [7, 8, 7, 7, 10, 11, 12, 11, 6, 5]


def test_the_drawing_has_a_band_a_category_its_peak_and_its_time():
    root = ET.fromstring(drawing.picture("baseline", snapshot()))
    texts = [element.text for element in root.iter() if element.text]
    assert [text for text in texts if text in drawing.CATEGORIES] == [*drawing.CATEGORIES] * 2  # bands, then the legend
    assert {"baseline", f"peak {12 * GB / 1e9:.2f} GB", "10.0 ms"} <= set(texts)
    within = [
        float(number) for path in root.iter("{http://www.w3.org/2000/svg}path") for number in path.get("d").split("V")[1].split("H")[:1]
    ]
    assert all(0 <= number <= drawing.HEIGHT for number in within)


def test_a_trace_without_a_clock_is_drawn_by_its_events():
    plain = snapshot()
    plain["device_traces"][0] = [{key: value for key, value in each.items() if key != "time_us"} for each in EVENTS]
    assert "10 events" in drawing.picture("baseline", plain)


def test_a_snapshot_without_a_trace_is_refused():
    with pytest.raises(ValueError, match="no allocations in the trace of device 1"):
        categories.over_time(snapshot(), device=1)


def test_the_script_draws_a_pickled_snapshot(tmp_path):
    (tmp_path / "fp8 & mine.pickle").write_bytes(pickle.dumps(snapshot()))
    command = [sys.executable, str(CHAPTER / "memory_picture.py")]
    done = subprocess.run([*command, str(tmp_path / "fp8 & mine.pickle")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'fp8 & mine.svg'}\n", "")
    root = ET.parse(tmp_path / "fp8 & mine.svg").getroot()
    assert "fp8 & mine: memory of a step" in {element.text for element in root.iter()}
    for name, content in {"empty.pickle": b"", "other.pickle": pickle.dumps({"segments": [], "device_traces": []})}.items():
        (tmp_path / name).write_bytes(content)
        done = subprocess.run([*command, str(tmp_path / name)], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    done = subprocess.run([*command, str(tmp_path / "none.pickle")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, "No such file" in done.stderr) == (2, True)
