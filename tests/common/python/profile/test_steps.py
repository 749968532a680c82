"""What a step comes to: launches, gaps, overlap, the host's time; out of nsys's tables, of Chrome traces and back."""

import json
import sqlite3

import pytest

from common.python.profile.nsys import UnreadableTrace, read_steps
from common.python.profile.steps import GpuWork, SeenStep, chrome_trace, figures, gap_share, read_chrome
from common.python.project import PROJECT_ROOT
from tests.support.trace_events import refused

TABLES = """
CREATE TABLE StringIds (id INTEGER, value TEXT);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, correlationId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, correlationId INTEGER, streamId INTEGER, demangledName INTEGER);
INSERT INTO StringIds VALUES (1, 'copy(int)'), (2, 'a/baseline');
"""


def work(kind, start, end, call):
    return GpuWork(kind, kind, float(start), float(end), call)


def test_gaps_overlap_and_launches_of_a_step():
    step = figures(
        SeenStep(
            (work("kernel", 0, 100, 1), work("kernel", 50, 120, 1), work("gpu_memcpy", 100, 140, 2), work("kernel", 180, 200, 3)),
            host_ns=70.0,
        ),
        "nsys",
    )
    assert (step.launches, step.kernels, step.copies, step.host_ns) == (2, 3, 1, 70)
    assert (step.span_ns, step.busy_ns) == (200, 160)
    assert gap_share(step) == pytest.approx(0.2)
    assert step.overlap_share == pytest.approx(0.5)  # 20 of the copy's 40 ns


def test_a_step_without_work_has_no_gap_and_no_overlap():
    step = figures(SeenStep((), 5.0), "torch.profiler")
    assert (step.launches, step.span_ns, gap_share(step), step.overlap_share) == (0, 0, 0, None)


def test_a_chrome_trace_comes_back_as_it_was(tmp_path):
    copied = GpuWork("copy", "gpu_memcpy", 2500.0, 3000.0, 8, stream=13)
    seen = SeenStep((work("kernel", 1000, 2500, 7), copied), 0.0)
    path = tmp_path / "trace.json"
    path.write_text(chrome_trace({"a/baseline": seen}))
    assert read_chrome(path, "a/baseline").work == seen.work


# An H200 ran this: by programmatic dependent launch the second kernel starts 64 ns before the first has ended.
DEPENDENT = (
    GpuWork("gemm", "kernel", 25496234.0, 25503658.0, 1, stream=13),
    GpuWork("splitKreduce", "kernel", 25503594.0, 25505514.0, 2, stream=13),
    GpuWork("next", "kernel", 25506794.0, 25507914.0, 3, stream=13),
    GpuWork("copy", "gpu_memcpy", 25503594.0, 25506000.0, 4, stream=14),
)


def test_perfetto_would_drop_nothing_of_a_chrome_trace():
    document = json.loads(chrome_trace({"a/baseline": SeenStep(DEPENDENT, 0.0), "a/optimized": SeenStep(DEPENDENT[::-1], 0.0)}))
    assert refused(document) == []
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"}
    shown = {
        (names[event["pid"], 0], names[event["pid"], event["tid"]], event["name"]) for event in document["traceEvents"] if "ts" in event
    }
    assert shown == {
        (label, *where)
        for label in ("a/baseline", "a/optimized")
        for where in (
            ("stream 13", "gemm"),
            ("stream 13, overlapping", "splitKreduce"),
            ("stream 13", "next"),
            ("stream 14", "copy"),
        )
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ph": "Z"}, "event 0: found the phase 'Z'"),
        ({"ts": "12"}, "event 0: found ts='12'; expected microseconds, as a number"),
        ({"dur": None}, "event 0: found dur=None; expected microseconds, as a number"),
        ({"pid": "a/baseline"}, "event 0: found pid='a/baseline' and tid=1; expected whole numbers, names in metadata"),
        ({"ph": "s"}, "event 0: found the flow None; expected a number, or one in hexadecimal"),
        ({"ph": "b"}, "event 0: found no id of something asynchronous"),
        ({"ph": "M", "name": "process_name"}, "event 0: found metadata without args.name"),
        ({"ph": "C", "args": {"bytes": "many"}}, "event 0: found the counter {'bytes': 'many'}; expected numbers"),
        ({"ph": "B"}, "thread (1, 1): found 1 more B than E"),
        ({"ts": 4.9}, "thread (1, 1): gemm starts 4100 ns before another ends, and ends after it"),
    ],
)
def test_what_perfetto_refuses_is_seen(change, sentence):
    event = {"ph": "X", "name": "gemm", "pid": 1, "tid": 1, "ts": 0, "dur": 9}
    assert refused({"traceEvents": [{**event, **change}, event]}) == [sentence]


def test_perfetto_would_drop_nothing_of_the_traces_in_the_tree():
    files = [file for file in PROJECT_ROOT.glob("ch*/*_trace_*.json") if "traceEvents" in file.read_text(encoding="utf-8")]
    assert files
    for file in files:
        assert refused(json.loads(file.read_text(encoding="utf-8"))) == [], file


def test_the_host_is_timed_by_the_range_on_its_own_timeline(tmp_path):
    events = [
        {"ph": "X", "cat": category, "name": "a/baseline", "ts": 0.0, "dur": duration}
        for category, duration in (("user_annotation", 3.0), ("gpu_user_annotation", 9.0))
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [*events, {"ph": "M", "name": "process_name"}]}))
    assert read_chrome(path, "a/baseline").host_ns == 3000


@pytest.fixture
def database(tmp_path):
    """A report's tables with what `script` adds."""

    def write(script):
        path = tmp_path / "profile.sqlite"
        connection = sqlite3.connect(path)
        connection.executescript(TABLES + script)
        connection.close()
        return path

    return write


def test_work_belongs_to_the_range_in_which_the_host_started_it(database):
    path = database("""
        INSERT INTO NVTX_EVENTS VALUES (100, 500, 60, NULL, 2), (110, 160, 59, NULL, 2);
        INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (90, 1), (120, 2);
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (130, 150, 1, 7, 1), (510, 550, 2, 7, 1), (600, 650, 3, 7, 1);
    """)
    step = read_steps(path, ["a/baseline"])["a/baseline"]
    # The first began before the range; the second's clock is off, and its launch tells; of the third nobody knows the launch.
    assert [(each.name, each.start_ns) for each in step.work] == [("copy(int)", 510)]
    assert step.host_ns == 50


def test_a_graph_that_was_traced_whole_is_one_launch(database):
    path = database("""
        INSERT INTO NVTX_EVENTS VALUES (100, 500, 59, 'a/baseline', NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, correlationId INTEGER, streamId INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (120, 320, 4, 7);
    """)
    assert figures(read_steps(path, ["a/baseline"])["a/baseline"], "nsys").launches == 1


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("", "no range a/baseline"),
        ("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a/baseline_b', NULL)", "no range a/baseline"),
        ("INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, 'a/baseline', NULL)", "no work on a GPU in the range a/baseline"),
        ("DROP TABLE NVTX_EVENTS; CREATE TABLE NVTX_EVENTS (start INTEGER)", "NVTX_EVENTS: no such column: text"),
    ],
)
def test_what_is_missing_is_named(database, script, told):
    with pytest.raises(UnreadableTrace, match=told):
        read_steps(database(script), ["a/baseline"])


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "profile.sqlite"
    path.write_text("no database" * 100)
    with pytest.raises(UnreadableTrace, match=r"profile\.sqlite: file is not a database"):
        read_steps(path, ["a/baseline"])
