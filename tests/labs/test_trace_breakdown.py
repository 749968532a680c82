"""Breakdowns of traced steps in labs/ultimate_moe_inference: as HolisticTraceAnalysis answers them, out of nsys's traces and torch's."""

import json
import subprocess
import sys

import pytest

from common.python.profile.steps import GpuWork, SeenStep, chrome_trace
from common.python.project import PROJECT_ROOT
from labs.ultimate_moe_inference import trace_breakdown
from labs.ultimate_moe_inference.scaling_study import study
from tests.support.trace_events import refused

ANSWERS = json.loads((PROJECT_ROOT / "tests/data/hta_breakdowns.json").read_text())
STEPS = {
    side: SeenStep(tuple(GpuWork(name, kind, 1e3 * start, 1e3 * end, call, stream) for name, kind, start, end, call, stream in step), 0.0)
    for side, step in ANSWERS["steps"].items()
}
HTA = ANSWERS["hta"]
KINDS = {"COMPUTATION": "compute", "COMMUNICATION": "communication", "MEMORY": "memory"}
ROW = "labs_ultimate_moe_inference_ultimate_inference"


def traced_by_nsys(folder, steps):
    """A run's folder with the one trace of all sides that nsys's tables come to."""
    (folder / ROW).mkdir(parents=True)
    text = chrome_trace({f"{study.TARGET}/{side}": step for side, step in steps.items()})
    (folder / ROW / "profile.chrome.json").write_text(text)


def traced_by_torch(folder, steps):
    """A run's folder with a trace a side, in which the host has events too."""
    for side, step in steps.items():
        (folder / ROW / side).mkdir(parents=True)
        document = json.loads(chrome_trace({side: step}))
        document["traceEvents"].append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0.0, "dur": 5000.0, "pid": 3, "tid": 3})
        (folder / ROW / side / "trace.json").write_text(json.dumps(document))


@pytest.fixture(params=[traced_by_nsys, traced_by_torch])
def found(request, tmp_path):
    request.param(tmp_path, STEPS)
    return trace_breakdown.read(trace_breakdown.collect(tmp_path, ["baseline", "layer1_basics", "optimized"]))


def test_perfetto_would_drop_nothing_of_a_layers_trace(tmp_path):
    traced_by_nsys(tmp_path, STEPS)
    for side, file in trace_breakdown.collect(tmp_path, STEPS).items():
        document = json.loads(file.read_text())
        assert refused(document) == []
        assert {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": side}} in document["traceEvents"]


@pytest.mark.parametrize("side", STEPS)
def test_the_temporal_breakdown_is_that_of_hta(found, side):
    ours, theirs = found[side], HTA["sides"][side]
    times = {"span": ours.span_ns, "idle": ours.idle_ns, "compute": ours.compute_ns, "other": ours.other_ns}
    assert {name: ns / 1e3 for name, ns in times.items()} == pytest.approx({name: theirs[name] for name in times})


@pytest.mark.parametrize("side", STEPS)
def test_the_kernel_breakdown_is_that_of_hta(found, side):
    ours = {kernel.name: [kernel.total_ns / 1e3, kernel.longest_ns / 1e3] for kernel in found[side].kernels}
    assert ours == {name: pytest.approx(times) for name, times in HTA["sides"][side]["kernels"].items()}


def test_the_table_beside_hta_has_both_in_microseconds(found):
    lines = trace_breakdown.beside_hta(found, HTA).splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == [f"| {side}" for side in found]
    for line in lines:
        cells = line.strip("| ").split(" | ")[1:]
        assert cells[0::2] == cells[1::2]  # ours and HTA's


def test_the_times_of_kinds_are_those_of_hta(found):
    ours = {}
    for each in found.values():
        for kinds, ns in each.kinds.items():
            ours[kinds] = ours.get(kinds, 0.0) + ns / 1e3
    theirs = {" + ".join(sorted(KINDS[kind] for kind in kinds.split(" overlapping "))): us for kinds, us in HTA["kinds"].items()}
    assert ours == {kinds: pytest.approx(us, abs=2) for kinds, us in theirs.items()}  # HTA cuts each piece down to whole microseconds


def test_a_kernel_that_hides_a_copy_leaves_nothing_to_the_copy_alone():
    inside = SeenStep((GpuWork("k", "kernel", 0.0, 100.0, 1), GpuWork("c", "gpu_memcpy", 20.0, 60.0, 2, 3)), 0.0)
    behind = SeenStep((GpuWork("k", "kernel", 0.0, 100.0, 1), GpuWork("c", "gpu_memcpy", 110.0, 150.0, 2, 3)), 0.0)
    assert trace_breakdown.breakdown_of(inside).other_ns == 0
    assert (trace_breakdown.breakdown_of(behind).other_ns, trace_breakdown.breakdown_of(behind).idle_ns) == (40, 10)


def test_each_layer_has_a_trace_that_hta_takes_for_a_rank(tmp_path):
    traced_by_nsys(tmp_path, STEPS)
    files = trace_breakdown.collect(tmp_path, ["baseline", "layer1_basics", "optimized"])
    assert [file.name for file in files.values()] == ["0_baseline.json", "1_optimized.json"]
    ranks = [json.loads(file.read_text())["distributedInfo"]["rank"] for file in files.values()]
    assert ranks == [0, 1]
    for file in files.values():  # Perfetto groups by whole numbers, and HTA counts only what has a stream
        events = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
        assert all(isinstance(event[name], int) for event in events for name in ("pid", "tid"))
        assert all(event["args"]["stream"] >= 0 for event in events)


def test_kernels_beyond_the_first_are_one_row():
    many = SeenStep(tuple(GpuWork(f"k{at}", "kernel", 100.0 * at, 100.0 * at + 10 + at, at) for at in range(8)), 0.0)
    text = trace_breakdown.kernels({"baseline": trace_breakdown.breakdown_of(many)})
    assert text.count("\n| baseline |") == trace_breakdown.SHOWN + 1
    assert "| 3 others |" in text
    assert text.index("`k7`") < text.index("`k3`")


def test_a_step_without_work_on_a_gpu_has_no_breakdown(tmp_path):
    traced_by_torch(tmp_path, {"baseline": SeenStep((), 0.0)})
    assert trace_breakdown.read(trace_breakdown.collect(tmp_path, ["baseline"])) == {}


def asked_of_hta(folder, path):
    script = PROJECT_ROOT / "labs/ultimate_moe_inference/read_by_hta.py"
    return subprocess.run([sys.executable, script, folder], env={"PYTHONPATH": str(path)}, capture_output=True, text=True, check=False)


def test_without_hta_its_reader_is_skipped(tmp_path):
    done = asked_of_hta(tmp_path, tmp_path)
    assert (done.returncode, done.stdout.partition(":")[0]) == (0, "SKIPPED")


def test_with_hta_a_folder_without_traces_is_refused(tmp_path):
    (tmp_path / "hta").mkdir()
    (tmp_path / "hta/__init__.py").write_text("")
    done = asked_of_hta(tmp_path / "hta", tmp_path)
    assert done.returncode == 1
    assert "found no trace; expected those of run_full_analysis.py --profile hta" in done.stderr
