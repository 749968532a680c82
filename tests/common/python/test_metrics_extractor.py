"""The figures of a run, flat: what is measured, what a workload reports, what profilers told, each with its source."""

import json

from common.python.metrics_extractor import figures_of, main
from common.python.report.run_folder import RunFolder
from common.python.results import Energy, PredictedTerm, ReportedMetric, Share, SideProfile, StepTrace, TelemetrySummary
from common.python.settings import Settings
from tests.support.factories import a_row, a_run, a_side, a_timing

STEP = StepTrace(source="nsys", launches=2, kernels=2, copies=0, host_ns=5e3, span_ns=100e3, busy_ns=90e3)


def test_every_figure_of_a_run_is_there_with_its_source(tmp_path, capsys):
    row = a_row(
        sides={"baseline": a_side("baseline"), "optimized": a_side(profile=SideProfile(step=STEP, counters={"dram__bytes.sum": 4096.0}))},
        metrics={"optimized": {"tpot_ms": ReportedMetric(value=1.5, unit="ms", better="lower", self_reported=False)}},
    )
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "20260102_030405")
    folder.write_pair(row)
    folder.write_run(a_run())
    assert main([str(tmp_path / "run")]) == 0
    found = {(each["side"], each["name"]): each for each in json.loads(capsys.readouterr().out)}
    assert {each["target"] for each in found.values()} == {"ch07:transpose"}
    assert found["optimized", "time"]["value"] == 36_700
    assert found["optimized", "speedup"]["shape"] == "default"
    assert (found["optimized", "tpot_ms"]["value"], found["optimized", "tpot_ms"]["source"]) == (1.5, "harness")
    assert (found["optimized", "launches"]["value"], found["optimized", "launches"]["source"]) == (2, "nsys")
    assert (found["optimized", "dram__bytes.sum"]["value"], found["optimized", "dram__bytes.sum"]["source"]) == (4096, "ncu")
    assert ("optimized", "overlap_share") not in found
    assert ("baseline", "launches") not in found


def figures(row):
    return {(each["side"], each["name"]): each for each in figures_of(row)}


def test_what_a_side_costs_and_how_near_it_comes_are_there():
    shares = {
        "baseline": Share(key="dram", share=0.4, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None),
        "optimized": Share(key="bf16", share=0.9, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=0.95),
    }
    timing = a_timing(shares=shares, telemetry=TelemetrySummary(energy=Energy(joules=700.0, seconds=2.0)))
    found = figures(a_row(timings={"wide": timing}))

    reached = found["optimized", "share_of_ceiling"]
    assert (reached["value"], reached["unit"], reached["ceiling"], reached["shape"]) == (0.9, "ratio", "bf16", "wide")
    assert found["baseline", "share_of_ceiling"]["ceiling"] == "dram"
    assert found["optimized", "share_of_ceiling_at_held_clock"]["value"] == 0.95
    assert ("baseline", "share_of_ceiling_at_held_clock") not in found
    energy = found["all", "energy"]
    assert (energy["value"], energy["unit"], energy["seconds"], energy["shape"]) == (700.0, "J", 2.0, "wide")
    assert (found["baseline", "peak_memory"]["value"], found["baseline", "peak_memory"]["unit"]) == (3 << 20, "bytes")
    phases = {"setup_build": 1.0, "setup_load": 0.01, "setup_prepare": 0.5, "setup_first_call": 0.002}
    assert {name: found["optimized", name]["value"] for name in phases} == phases
    assert (found["optimized", "break_even"]["value"], found["optimized", "break_even"]["unit"]) == (5209, "calls")
    assert ("baseline", "break_even") not in found
    assert found["baseline", "time"]["low"] < found["baseline", "time"]["value"] < found["baseline", "time"]["high"]


def test_what_nobody_measured_is_not_there():
    found = figures(a_row(sides={side: a_side(side, setup=None, peak_memory_bytes=None) for side in ("baseline", "optimized")}))
    assert {name for _, name in found} == {"time", "speedup"}


def test_a_folder_without_a_run_is_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none'}: no such folder; expected")


def test_what_was_predicted_is_there_with_its_ratio():
    term = PredictedTerm(subject="optimized", shape="wide", predicted=2e-3, measured=3e-3, unit="s", ratio=1.5, missed=True)
    guess = PredictedTerm(subject="speedup", shape="wide", predicted=1.2, measured=None, unit="x", is_guess=True)
    found = figures(a_row(timings={"wide": a_timing()}, predictions={"wide": (term, guess)}))
    value = found["all", "predicted optimized"]
    assert (value["value"], value["unit"], value["source"], value["shape"], value["missed"]) == (2e-3, "s", "prediction", "wide", True)
    assert found["all", "measured_over_predicted optimized"]["value"] == 1.5
    assert found["all", "predicted speedup"]["source"] == "guess"
    assert ("all", "measured_over_predicted speedup") not in found
