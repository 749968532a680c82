"""A traced ping-pong's file becomes a table with intervals and a picture of its steps, and a file that is none is named."""

import json
import re

import pytest

from common.python.errors import BenchmarkError
from common.python.report.pingpong_trace import PHASES, read_pingpong_trace
from tools.checks.pingpong import pingpong


def a_document(**changes):
    """Softmax of warpgroup 0 lies under products of the other for 30 and 34 % of the time, beside 10 % where both run theirs."""
    launches = []
    for more in (0, 0.04):
        together = [[0.0] * len(PHASES) for _ in PHASES]
        at = {
            ("softmax", "wait for scores"): 0.3 + more,
            ("softmax", "softmax"): 0.1,
            ("wait for sums", "softmax"): 0.2,
            ("outside", "outside"): 0.4 - more,
        }
        for (first, second), share in at.items():
            together[PHASES.index(first)][PHASES.index(second)] = share
        launches.append({"traced_us": 104.0 + 2 * more, "untraced_us": 100.0, "step_ns": 2000.0, "together": together})
    events = [("wait for turn", 0, 0.0, 1.0), ("softmax", 0, 1.0, 2.0), ("softmax", 1, 2.5, 1.5), ("wait for keys", 1, 4.0, 0.0)]
    fields = {
        "schema_version": 1,
        "gpu": "NVIDIA H200",
        "driver": "580.1",
        "date": "2026-01-02",
        "side": "optimized_x.cu",
        "shape": {"heads": 64, "queries": 4096},
        "blocks": 132,
        "clock_step_ns": 32,
        "phases": PHASES,
        "launches": launches,
        "traceEvents": [{"name": name, "ph": "X", "pid": 0, "tid": tid, "ts": ts, "dur": dur} for name, tid, ts, dur in events],
    }
    return fields | changes


@pytest.fixture
def demo(tmp_path):
    """A chapter's demo with one file that it wrote."""
    (tmp_path / "attention_pingpong_trace_h200.json").write_text(json.dumps(a_document()))
    return tmp_path / "attention_pingpong_trace.cu"


def test_the_table_tells_what_a_softmax_lies_under_and_where_time_goes(demo):
    text, _ = pingpong(demo)
    assert "optimized_x.cu at heads = 64, queries = 4096 on an NVIDIA H200, driver 580.1, 2026-01-02: means of 2 launches:" in text
    assert "![Phases of two warpgroups over some steps](attention_pingpong_trace_h200.svg)" in text
    found = {row[0]: row[1].split(" ")[0] for row in re.findall(r"^\| (.+) \| (.+) \|$", text, re.MULTILINE)}
    scores = (0.3 / 0.7 + 0.34 / 0.74) / 2
    assert float(found["softmax, while the other's products of scores run"]) == pytest.approx(100 * scores, abs=0.06)
    both = (0.2 / 0.7 + 0.2 / 0.74) / 2
    assert float(found["softmax, while the other's softmax runs"]) == pytest.approx(100 * both, abs=0.06)
    assert found["softmax, while the other's products of scores run, or of values may"] == "100.0"
    assert found["wait for scores"] == "16.0"
    assert found["softmax"] == "36.0"
    assert found["outside"] == "38.0"
    assert "A step takes 2000 ns [2000, 2000]; the clock moves on by 32 ns." in text.replace("2.00 µs [2.00, 2.00]", "2000 ns [2000, 2000]")


def test_the_picture_has_a_lane_a_warpgroup_and_phases_are_as_long_as_they_took(demo):
    (picture,) = pingpong(demo)[1].values()
    boxes = re.findall(r'<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)" height="\d+" fill="(#\w+)"><title>([^<]+)</title>', picture)
    assert [box[4] for box in boxes] == ["wait for turn: 1 µs", "softmax: 2 µs", "softmax: 1.5 µs"], "a phase of no time is not drawn"
    (_, wait_lane, wait, grey), (_, own_lane, own, orange), (start, other_lane, other, also_orange) = [box[:4] for box in boxes]
    assert (wait_lane, orange) == (own_lane, also_orange)
    assert other_lane != own_lane
    assert grey != orange
    assert float(own) == pytest.approx(2 * float(wait))
    assert float(other) == pytest.approx(1.5 * float(wait))
    assert float(start) - float(boxes[0][0]) == pytest.approx(2.5 * float(wait), abs=0.1)
    assert ">warpgroup 1</text>" in picture


def test_without_a_file_nothing_was_measured(tmp_path):
    text, pictures = pingpong(tmp_path / "attention_pingpong_trace.cu")
    assert text.endswith("(attention_pingpong_trace.cu): not measured yet.")
    assert not pictures


def test_a_file_that_is_no_such_document_is_an_error_that_names_it(demo):
    launch = a_document()["launches"][0]
    event = a_document()["traceEvents"][0]
    broken = (
        {"gpu": None},
        {"phases": PHASES[1:]},
        {"launches": [launch]},
        {"launches": [{**launch, "together": [[1.0]]}] * 2},
        {"traceEvents": [{**event, "name": "lunch"}]},
        {"traceEvents": []},
        {"extra": 1},
    )
    path = demo.with_name("attention_pingpong_trace_h200.json")
    for changes in broken:
        path.write_text(json.dumps(a_document(**changes)))
        with pytest.raises(BenchmarkError, match=rf"{path}: found .*; expected what the demo beside it writes"):
            read_pingpong_trace(path)
