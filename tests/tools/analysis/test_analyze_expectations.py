"""The drift of a run against what was accepted: synthetic units, a planted change, and every reason not to compare."""

import json

import pytest
from rich.console import Console

from common.python.gate.expectations import expectations_path, keep_expectations
from common.python.gate.noise_floor import StepClass
from common.python.report.run_folder import RunFolder
from common.python.results import ReportedMetric, StopReason
from common.python.settings import Settings
from common.python.wording import speedup_text
from tests.support.factories import (
    MACHINE,
    a_failure,
    a_recorded_timing,
    a_row,
    a_run,
    an_expectation,
    recorded_ladder,
    recorded_units,
)
from tests.support.plans import H200
from tools.analysis import analyze_expectations
from tools.analysis.analyze_expectations import REPORT_FILE, main

GPUS = {"gpus": [H200.model_dump(mode="json")]}
TPOT = {"optimized": {"tpot_ms": ReportedMetric(value=10.0, unit="ms", better="lower", self_reported=False)}}
SLOWER = {"optimized": {"tpot_ms": ReportedMetric(value=12.5, unit="ms", better="lower", self_reported=False)}}


@pytest.fixture
def analyse(tmp_path, capsys):
    """Write a run of `rows` and the expectation of ch07:transpose, and return the exit code, what was printed, and the JSON."""

    def go(*rows, settings=None, key="h200", expectation=None, **changes):
        root = tmp_path / "root"
        (root / "ch07").mkdir(parents=True)
        keep_expectations(expectations_path(root / "ch07", key), "transpose", {"default": expectation or an_expectation(metrics=TPOT)})
        folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "20260102_030405")
        for row in rows:
            folder.write_pair(row)
        folder.write_run(a_run(settings or Settings(root=root), **{"environment": MACHINE | GPUS} | changes))
        code = main([str(folder.path)])
        return code, capsys.readouterr(), json.loads((folder.path / REPORT_FILE).read_text())

    return go


def a_timed_row(ratio=2.0, baseline_ns=80_000.0, **changes):
    timing = a_recorded_timing(units=recorded_units(ratio, baseline_ns, count=24, seed=2), **changes)
    return a_row(timings={"default": timing}, metrics=SLOWER)


def test_a_run_like_the_accepted_one_has_not_drifted(analyse):
    code, printed, told = analyse(a_timed_row())
    assert code == 0
    assert [timing["verdict"]["kind"] for timing in told["timings"]] == ["SAME"]
    assert [drift["figure"] for drift in told["drifts"]] == ["speedup", "time of baseline", "time of optimized", "tpot_ms of optimized"]
    assert told["not_compared"] == {}
    assert "SAME" in printed.out
    assert printed.out.rstrip().endswith(REPORT_FILE)


def test_a_rung_is_set_against_what_it_was_over_the_baseline_and_red_by_itself(analyse):
    ladder = {"baseline": 80_000.0, "first": 60_000.0, "second": 50_000.0, "optimized": 40_000.0}
    changed = ladder | {"first": 58_200.0, "second": 51_500.0}
    kept, found = (a_recorded_timing(units=recorded_ladder(times, count=24, seed=7)) for times in (ladder, changed))
    _, _, told = analyse(a_row(timings={"default": found}), expectation=an_expectation(units=kept.units))
    speedup, first, second, *_ = told["drifts"]

    assert (speedup["verdict"], first["verdict"], second["verdict"]) == ("SAME", "IMPROVED", "REGRESSED")
    assert second["figure"] == "rung second over both ends"
    assert (second["accepted"], second["found"]) == tuple(speedup_text(each.speedups["second"]) for each in (kept, found))


def test_a_planted_loss_is_red_and_its_side_s_time_shows_it(analyse):
    _, _, told = analyse(a_timed_row(ratio=1.9))
    ratio, baseline, optimized, _ = told["drifts"]
    assert ratio["verdict"] == told["timings"][0]["verdict"]["kind"] == "REGRESSED"
    assert ratio["percent"]["estimate"] == pytest.approx(-5.0, abs=0.5)
    assert baseline["percent"]["low"] < 0 < baseline["percent"]["high"]
    assert optimized["percent"]["low"] > 4


def test_a_slower_machine_drifts_in_its_times_and_not_in_the_ratio(analyse):
    _, _, told = analyse(a_timed_row(baseline_ns=88_000.0))
    assert told["drifts"][0]["verdict"] == "SAME"
    assert [drift["percent"]["estimate"] for drift in told["drifts"][1:3]] == pytest.approx([10.0, 10.0], abs=0.5)


def test_further_figures_are_set_against_those_accepted(analyse):
    _, _, told = analyse(a_timed_row())
    assert told["drifts"][3] == {
        "target": "ch07:transpose",
        "shape": "default",
        "figure": "tpot_ms of optimized",
        "verdict": "",
        "accepted": "10.0 ms",
        "found": "12.5 ms",
        "percent": {"estimate": 25.0},
    }


def test_the_noise_of_the_machine_widens_the_band(analyse):
    _, _, told = analyse(a_timed_row(ratio=1.99), noise_percent={StepClass.LONG: 3.0})
    assert told["timings"][0]["verdict"]["changes"]["speedup"]["band_percent"] == 3.0
    assert told["drifts"][0]["verdict"] == "SAME"


def test_expectations_of_several_gpus_are_found_by_the_pair(analyse):
    _, _, told = analyse(a_timed_row(), key="2xh200", environment=MACHINE | {"gpus": GPUS["gpus"] * 2})
    assert told["timings"][0]["expectations"].endswith("ch07/expectations_2xh200.json")


@pytest.mark.parametrize(
    ("row", "settings", "why"),
    [
        (a_failure(target="ch07:transpose"), {}, "WRONG_RESULT, not timed"),
        (a_timed_row(device="cpu"), {}, "timed on a CPU"),
        (a_timed_row(mode="sustained"), {}, "timed in mode sustained; burst is what is accepted"),
        (a_timed_row(stop_reason=StopReason.THROTTLED), {}, "the device throttled"),
        (a_timed_row(), {"against": "HEAD~1"}, "its baseline is another revision's"),
        (a_timed_row(goal="memory"), {}, "it has no gated figure: a half, or no figure for its goal"),
        (a_timed_row(cache="hot"), {}, "cache hot where cold was accepted"),
    ],
)
def test_what_cannot_be_compared_says_why(analyse, tmp_path, row, settings, why):
    code, printed, told = analyse(row, settings=Settings(root=tmp_path / "root", **settings))
    assert code == 0
    assert told["not_compared"] == {"ch07:transpose": why}
    assert told["drifts"] == []
    assert f"ch07:transpose: not compared: {why}" in printed.out


def test_a_pair_that_nobody_measured_here_is_named(analyse):
    _, _, told = analyse(a_timed_row().model_copy(update={"target": "ch07:copy"}))
    assert told["not_compared"]["ch07:copy"].startswith("nothing is expected of it on this GPU model in ")


def test_a_narrow_terminal_loses_intervals_and_no_number_is_cut(analyse, monkeypatch):
    monkeypatch.setattr(analyze_expectations, "console_for", lambda **_: Console(width=80, highlight=False))
    _, printed, told = analyse(a_timed_row())
    assert max(map(len, printed.out.splitlines()[:-1])) <= 80
    for drift in told["drifts"]:
        assert drift["found"].partition(" [")[0] in printed.out
    assert "[" not in printed.out


def test_a_pipe_has_room_for_intervals(analyse):
    _, printed, told = analyse(a_timed_row())
    assert all(drift["found"] in printed.out for drift in told["drifts"])
    assert "change [99 %]" in printed.out


def test_a_root_that_is_not_here_is_one_sentence(analyse, tmp_path, capsys):
    analyse(a_timed_row())
    assert main([str(tmp_path / "run"), "--root", str(tmp_path / "elsewhere")]) == 1
    assert "elsewhere: no such folder; expected" in capsys.readouterr().err


def test_what_is_no_run_is_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none'}: no such folder; expected that of a run")


def test_a_run_that_does_not_tell_its_gpus_is_one_sentence(tmp_path, capsys):
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "20260102_030405")
    folder.write_run(a_run())
    file = folder.path / "run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"environment": {"gpus": [{"name": "H200"}]}}))
    assert main([str(folder.path)]) == 1
    assert "gpus.0.driver: Field required" in capsys.readouterr().err
