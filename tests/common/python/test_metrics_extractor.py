"""The figures of a run, flat: what is measured, what a workload reports, what profilers told, each with its source."""

import json

from common.python.artifacts import RunFolder
from common.python.metrics_extractor import main
from common.python.results import ReportedMetric, SideProfile, StepTrace
from common.python.settings import Settings
from tests.common.python.factories import a_row, a_run, a_side

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


def test_a_folder_without_a_run_is_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none'}: no such folder; expected")
