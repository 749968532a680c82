"""Two runs are compared by their units, row by row; what cannot be compared is said and never red."""

import json
import re
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from common.python.errors import ExitCode
from common.python.gate.comparison import Comparison
from common.python.gate.noise_floor import StepClass
from common.python.results import Metrics, ReportedMetric
from common.python.settings import Settings
from common.python.storage import document_text
from tests.support.factories import MACHINE, a_failure, a_recorded_timing, a_row, a_run, recorded_ladder, recorded_units
from tests.support.slower import NOTE, RECORDED, SLOWER, slower_run
from tools.checks.schemas import SCHEMAS
from tools.cli.benchmark_cli import run_command_line


def a_measured_row(ratio, target="ch07:transpose", seed=0, **changes):
    return a_row(target, timings={"default": a_recorded_timing(units=recorded_units(ratio, count=12, seed=seed), **changes)})


def compared(rows_a, rows_b, gate=0.5, run_a=None, run_b=None):
    by_target = [{row.target: row for row in rows} for rows in (rows_a, rows_b)]
    return Comparison(run_a or a_run(), by_target[0], run_b or a_run(), by_target[1], gate)


def verdict(comparison):
    (row,) = comparison.rows()
    return row.verdicts["default"]


@pytest.mark.parametrize(("ratio", "kind"), [(1.94, "REGRESSED"), (2.0, "SAME"), (2.06, "IMPROVED"), (1.99, "INCONCLUSIVE")])
def test_the_speedup_of_b_is_held_against_that_of_a(ratio, kind):
    found = verdict(compared([a_measured_row(2.0)], [a_measured_row(ratio, seed=1)]))

    assert found.kind == kind
    assert "promote" not in found.sentence


def test_a_figure_of_which_neither_way_is_better_is_never_judged():
    def a_row_with(budget, seed):
        metrics = {"optimized": {"budget": ReportedMetric(value=budget, unit="tokens", better="neither")}}
        return a_measured_row(2.0, seed=seed).model_copy(update={"metrics": metrics})

    more, fewer = (verdict(compared([a_row_with(512, 0)], [a_row_with(budget, 1)])) for budget in (4096, 64))
    assert more == fewer == verdict(compared([a_measured_row(2.0)], [a_measured_row(2.0, seed=1)]))
    assert (more.kind, more.changes.keys()) == ("SAME", {"speedup"})


def test_the_rungs_that_both_runs_have_are_held_against_each_other():
    def a_climb(seed, **changes):
        times = {"baseline": 80_000.0, "tiled": 60_000.0, "optimized": 40_000.0} | changes
        return a_row(timings={"default": a_recorded_timing(units=recorded_ladder(times, count=24, seed=seed))})

    slower = verdict(compared([a_climb(1)], [a_climb(2, tiled=61_800.0)]))
    faster = verdict(compared([a_climb(1)], [a_climb(2, tiled=58_200.0)]))
    longer = {"baseline": 80_000.0, "added": 70_000.0, "tiled": 60_000.0, "optimized": 40_000.0}
    longer = a_row(timings={"default": a_recorded_timing(units=recorded_ladder(longer, count=24, seed=2))})

    assert slower.kind == "REGRESSED"
    assert slower.sentence.startswith("rung tiled over both ends -")
    assert faster.kind == "IMPROVED"
    assert verdict(compared([a_climb(1)], [longer])).changes.keys() == {"speedup", "rung tiled over both ends"}


def test_the_band_is_the_gate_or_the_wider_of_the_floors_that_the_runs_knew():
    rows = [a_measured_row(2.0)], [a_measured_row(1.94, seed=1)]

    assert verdict(compared(*rows, gate=5.0)).kind == "SAME"
    assert verdict(compared(*rows, run_a=a_run(noise_percent={StepClass.LONG: 5.0}))).kind == "SAME"
    assert verdict(compared(*rows, run_b=a_run(noise_percent={StepClass.SHORT: 5.0}))).kind == "REGRESSED"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"device": "cpu", "clock": "host"}, "under another device and clock"),
        ({"cache": "hot"}, "under another cache"),
        ({"mode": "sustained"}, "under another mode"),
        ({"shape": {"n": 1}}, "under another shape"),
    ],
)
def test_other_conditions_are_another_question(changes, why):
    found = verdict(compared([a_measured_row(2.0)], [a_measured_row(1.5, **changes)]))

    assert found.kind == "UNGATED"
    assert found.sentence.startswith(f"{why}: speedup -25")


def against(revision, commit=""):
    return a_run(Settings(against=revision), against=commit)


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ((a_run(), against("HEAD~2")), "as B was --against HEAD~2"),
        ((against("v1", "a" * 40), a_run()), "as A was --against v1"),
        ((against("HEAD~1"), against("HEAD~2")), "as A was --against HEAD~1 and B --against HEAD~2"),
        (
            (against("HEAD~1", "a" * 40), against("HEAD~1", "b" * 40)),
            "as A was --against HEAD~1 (aaaaaaaaaa) and B --against HEAD~1 (bbbbbbbbbb)",
        ),
    ],
)
def test_another_baseline_is_another_question(runs, why):
    found = verdict(compared([a_measured_row(2.0)], [a_measured_row(1.5)], run_a=runs[0], run_b=runs[1]))

    assert found.kind == "UNGATED"
    assert found.sentence.startswith(f"{why}: speedup -25")


@pytest.mark.parametrize("runs", [(against("HEAD~1"), against("HEAD~1")), (against("v1", "a" * 40), against("HEAD~3", "a" * 40))])
def test_one_revision_is_one_baseline_however_it_is_called(runs):
    assert verdict(compared([a_measured_row(2.0)], [a_measured_row(1.5)], run_a=runs[0], run_b=runs[1])).kind == "REGRESSED"


def test_neither_a_cpu_nor_another_gpu_is_gated_but_the_change_is_shown():
    on_cpu = {"device": "cpu", "clock": "host"}
    other = a_run(environment=MACHINE | {"gpus": [{"name": "NVIDIA B200", "driver": "580.1"}]})

    cpu = verdict(compared([a_measured_row(2.0, **on_cpu)], [a_measured_row(1.5, **on_cpu)]))
    gpus = verdict(compared([a_measured_row(2.0)], [a_measured_row(1.5)], run_b=other))
    assert (cpu.kind, gpus.kind) == ("UNGATED", "UNGATED")
    assert cpu.sentence.startswith("timed on a CPU: speedup -25")
    assert gpus.sentence.startswith("A ran on NVIDIA H200 and B on NVIDIA B200: speedup -25")


def test_a_half_has_nothing_to_compare():
    half = a_row("ch07:optimized_transpose", timings={"default": a_recorded_timing(units=halves())})

    assert verdict(compared([half], [half])).sentence == "a half has no speedup"


def halves():
    return tuple(unit.model_copy(update={"blocks": {"optimized": unit.blocks["optimized"]}}) for unit in recorded_units(2.0))


def test_what_only_one_run_has_is_said():
    two_shapes = a_row("ch07:c", timings={"small": a_recorded_timing(), "large": a_recorded_timing()})
    one_shape = a_row("ch07:c", timings={"small": a_recorded_timing()})
    broken = a_failure(target="ch07:d")
    comparison = compared([a_row("ch07:a"), one_shape, a_row("ch07:d")], [a_row("ch07:b"), two_shapes, broken])

    assert comparison.missing() == [
        "ch07:a: only in A",
        "ch07:b: only in B",
        "ch07:c @large: timed only in B",
        "ch07:d: PASSED in A, WRONG_RESULT in B",
    ]
    assert [row.target for row in comparison.rows()] == ["ch07:c"]


@pytest.fixture
def folders(tmp_path):
    """Writes a run with one row, and says where."""

    def write(name, row):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "run.json").write_text(document_text(a_run(run_id=name)))
        (folder / "metrics.json").write_text(document_text(Metrics(run_id=name, rows=(row,))))
        return str(folder)

    return write


def test_on_the_command_line_a_slower_run_exits_2(folders, capsys):
    before, slower = folders("before", a_measured_row(2.0)), folders("slower", a_measured_row(1.94, seed=1))

    assert run_command_line(["compare", before, slower]) == ExitCode.REGRESSION
    assert run_command_line(["compare", slower, before]) == ExitCode.GOOD
    assert run_command_line(["compare", before, slower, "--gate", "5"]) == ExitCode.GOOD
    printed = capsys.readouterr().out
    assert "ch07:transpose: REGRESSED: speedup -3." in printed
    assert "ch07:transpose: IMPROVED: speedup +3." in printed


def test_on_the_command_line_runs_without_a_row_in_common_compare_nothing(folders, capsys):
    first, other = folders("first", a_measured_row(2.0)), folders("other", a_measured_row(2.0, "ch07:else"))

    assert run_command_line(["compare", first, other]) == ExitCode.NOTHING_MEASURED
    assert capsys.readouterr().out.splitlines() == ["ch07:else: only in B", "ch07:transpose: only in A"]


def test_the_recorded_pair_of_runs_shows_a_regression_in_the_terminal_junit_and_comment(tmp_path, capsys):
    out = tmp_path / "out"
    assert run_command_line(["compare", str(RECORDED), str(SLOWER), "--artifacts-dir", str(out)]) == ExitCode.REGRESSION
    assert re.search(r"ch07:vectorized_copy +1\.562x \[.*\] +1\.516x \[.*\] +REGRESSED", capsys.readouterr().out)

    suite = ET.parse(out / "junit.xml").find("testsuite")
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {"tests": "4", "failures": "1", "errors": "0"}
    comment = (out / "comment.md").read_text()
    assert "| ch07:vectorized_copy | 1.516x [1.515, 1.517] | speedup | -2.9 % [-3.0, -2.8] | 0.5 % | REGRESSED |" in comment
    assert NOTE in comment


def test_a_comparison_in_json_is_one_document_with_the_exit_code(tmp_path, capsys):
    code = run_command_line(["compare", str(RECORDED), str(SLOWER), "--json", "--artifacts-dir", str(tmp_path / "out")])
    printed = capsys.readouterr()
    document = json.loads(printed.out)

    jsonschema.validate(document, json.loads((SCHEMAS / "comparison.schema.json").read_text()))
    assert document == json.loads((tmp_path / "out/comparison.json").read_text())
    assert code == document["exit_code"] == 2
    assert document["b"]["folder"] == str(SLOWER)
    assert document["a"]["machine"]["gpus"][0]["name"] == "NVIDIA H200"
    kinds = {row["target"]: row["verdict"]["kind"] for row in document["rows"]}
    assert kinds["ch07:vectorized_copy"] == "REGRESSED"
    assert kinds["ch07:transpose_vectorized"] == "SAME"


def test_the_slower_run_is_the_recorded_one_with_one_side_lengthened():
    run, metrics = slower_run()

    assert (SLOWER / "run.json").read_text() == document_text(run)
    assert (SLOWER / "metrics.json").read_text() == document_text(metrics)
