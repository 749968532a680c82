"""A row over time: where it moved, what else changed is told with its evidence."""

import json
from subprocess import CompletedProcess

import pytest

from common.python.errors import BenchmarkError
from common.python.project import PROJECT_ROOT
from common.python.report import history as report_history
from common.python.report.history import as_json, history, lines_of_series, page
from common.python.report.run_folder import METRICS_FILE, RUN_FILE
from common.python.results import Metrics, Spread
from common.python.settings import Settings
from common.python.storage import document_text
from tests.common.python.pairs.test_revisions import git
from tests.support.factories import a_recorded_timing, a_row, a_run, recorded_units
from tools.cli.benchmark_cli import run_command_line

GPU = {"name": "NVIDIA H200", "uuid": "GPU-11111111-2222", "driver": "580.1", "index": 0}


def environment(commit="a" * 40, dirty=False, gpu=GPU, **changes):
    source = {"commit": commit, "dirty": dirty}
    return {"gpus": [gpu], "packages": {"torch": "2.11"}, "project": source, "root": source} | changes


@pytest.fixture
def keep(tmp_path):
    """Keeps a run of one row with a speedup; the clock is that of its SMs in MHz."""

    def kept(day, ratio, clock=1980.0, target="ch07:transpose", settings=None, shape=None, sources=None, **changes):
        spread = Spread(minimum=clock, median=clock, mean=clock, maximum=clock)
        timing = a_recorded_timing(units=recorded_units(ratio, count=12, seed=day), device="cuda")
        timing = timing.model_copy(update={"telemetry": timing.telemetry.model_copy(update={"sm_clock_mhz": spread})})
        timing = timing.model_copy(update={"shape": shape} if shape else {})
        run = a_run(settings and Settings(**settings)).model_copy(
            update={"environment": environment(**changes), "started": f"2026-01-{day:02d}T10:00:00"}
        )
        folder = tmp_path / "runs" / f"day_{day}"
        folder.mkdir(parents=True)
        (folder / RUN_FILE).write_text(document_text(run))
        row = a_row(target, timings={"default": timing}, sources=sources or {})
        (folder / METRICS_FILE).write_text(document_text(Metrics(run_id=run.run_id, rows=(row,))))
        return tmp_path / "runs"

    return kept


def changes(runs, root):
    (series,), _ = history(runs, "ch7:transpose", root)
    return [(change.cause, change.evidence) if change else None for change in series.changes]


@pytest.mark.parametrize(
    ("changed", "cause", "evidence"),
    [
        ({"packages": {"torch": "2.13"}}, "environment", "environment: torch 2.11 to 2.13"),
        ({"gpu": GPU | {"driver": "590.2"}}, "environment", "environment: driver 580.1 to 590.2"),
        ({"gpu": GPU | {"uuid": "GPU-99999999-2222"}}, "machine", "machine: NVIDIA H200 GPU-11111111 to NVIDIA H200 GPU-99999999"),
        ({"clock": 1500.0}, "clock", "clock: SM clock 1980 to 1500 MHz"),
        ({"dirty": True}, "code", "code: the pair's files may differ: there were changes that no commit has"),
        (
            {"commit": "b" * 40},
            "code",
            f"code: the pair's files: commit {'a' * 10} to {'b' * 10}, of which this checkout cannot tell the difference",
        ),
        ({}, "unknown", "nothing recorded differs"),
    ],
)
def test_where_it_moved_the_cause_is_told(keep, tmp_path, changed, cause, evidence):
    keep(2, 1.8, **changed)
    (first, second) = changes(keep(1, 2.0), tmp_path)
    assert first is None
    assert second[0] == cause
    assert second[1][0] == evidence


def test_a_commit_that_changed_none_of_its_files_is_no_cause(keep, tmp_path):
    git(tmp_path, "init", "-q")
    commits = []
    for name in ("ch07/workload_transpose.py", "README.md", "ch07/optimized_transpose.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-qm", name)
        git(tmp_path, "tag", f"t{len(commits)}")
        commits.append((tmp_path / f".git/refs/tags/t{len(commits)}").read_text().strip())
    for day, (ratio, commit) in enumerate(zip((2.0, 1.8, 1.6), commits, strict=True), start=1):
        runs = keep(day, ratio, commit=commit)
    _, page_only, side_too = changes(runs, tmp_path)
    assert page_only == ("unknown", ("nothing recorded differs",))
    assert side_too[0] == "code"
    assert side_too[1][0].endswith("ch07/optimized_transpose.cu")


FILES = {"ch07/workload_transpose.py": "w1", "ch07/baseline_transpose.cu": "b1", "ch07/optimized_transpose.cu": "o1"}
EDITED = {"ch07/optimized_transpose.cu": "o2", "ch07/shared_tile.cuh": "s1"}


@pytest.mark.parametrize(
    ("checkout", "commits"),
    [({"root": None, "project": None}, ""), ({"dirty": True}, ""), ({"commit": "b" * 40}, f" from {'a' * 10} to {'b' * 10}")],
)
def test_digests_name_the_files_that_changed_whatever_git_knows(keep, tmp_path, checkout, commits):
    keep(1, 2.0, sources=FILES, **({} if commits else checkout))
    runs = keep(2, 1.8, sources=FILES | EDITED, **checkout)
    cause, evidence = changes(runs, tmp_path)[1]
    assert (cause, evidence[0]) == ("code", f"code: the pair's files changed{commits}: {', '.join(EDITED)}")
    (series,), _ = history(runs, None, tmp_path)
    assert f": code (the pair's files changed{commits}: {', '.join(EDITED)}" in lines_of_series(series)[1][-1]


def test_files_of_the_same_digests_are_no_cause_although_a_checkout_had_changes(keep, tmp_path):
    pairs = {"commit": "a" * 40, "dirty": True}
    keep(1, 2.0, sources=FILES, root=pairs, project=None)
    assert changes(keep(2, 1.8, sources=FILES, root=pairs, project=None), tmp_path)[1] == ("unknown", ("nothing recorded differs",))
    assert changes(keep(3, 1.6, root=pairs, project=None), tmp_path)[2][0] == "code"  # a row from before digests were kept


def test_runs_that_asked_another_question_are_series_of_their_own(keep, tmp_path):
    asked = [{"against": "HEAD"}, {"kwargs": {"n": "64", "m": "2"}}, {"sustained": True}, {"cold_start": True}, {"ranks": 2}, {"seed": 3}]
    for day, settings in enumerate([None, *asked, {"kwargs": {"m": "2", "n": "64"}}], start=1):
        runs = keep(day, 2.0 - day / 10, settings=settings)
    found, _ = history(runs, "ch07:transpose", tmp_path)

    assert {series.name: [point.run.started[8:10] for point in series.points] for series in found} == {
        "ch07:transpose": ["01", "07"],
        "ch07:transpose --against HEAD": ["02"],
        "ch07:transpose --kwargs m=2 n=64": ["03", "08"],
        "ch07:transpose --sustained": ["04"],
        "ch07:transpose --cold-start": ["05"],
        "ch07:transpose --ranks 2": ["06"],
    }


def test_a_point_at_another_shape_is_not_compared_and_says_so(keep, tmp_path):
    keep(1, 2.0, shape={"n": 64})
    keep(2, 1.0, shape={"n": 128})
    (series,), _ = history(keep(3, 1.0, shape={"n": 128}), None, tmp_path)

    said = [line[-1] for line in lines_of_series(series)]
    assert said[:2] == ["", "not compared: under another shape"]
    assert said[2].startswith("speedup ")
    assert [point["apart"] for point in as_json([series])[0]["points"]] == ["", "not compared: under another shape", ""]


def test_a_row_of_the_same_name_in_another_root_is_a_series_of_its_own(keep, tmp_path):
    for day, root in enumerate(("one", "two", "one"), start=1):
        keep(day, 2.0 - day / 10, settings={"root": tmp_path / root}, root=None)
    runs = keep(4, 1.5, target="ch07:other", settings={"root": tmp_path / "two"}, root=None)
    found, _ = history(runs, None, tmp_path)

    assert {series.name: [point.run.started[8:10] for point in series.points] for series in found} == {
        "ch07:other": ["04"],
        f"ch07:transpose of {tmp_path}/one": ["01", "03"],
        f"ch07:transpose of {tmp_path}/two": ["02"],
    }


def test_the_project_is_one_root_wherever_a_machine_has_it(keep, tmp_path):
    keep(1, 2.0, settings={"root": "/one/checkout"})
    (series,), _ = history(keep(2, 2.0, settings={"root": "/another/checkout"}), None, tmp_path)
    assert (series.name, len(series.points)) == ("ch07:transpose", 2)


def test_where_the_pairs_lie_in_a_repository_of_their_own_both_commits_are_told(keep, tmp_path):
    harness, pairs = ({"commit": letter * 40, "dirty": False} for letter in "ab")
    keep(1, 2.0, project=harness, root=pairs)
    keep(2, 2.0, project=harness, root=None)
    (of_project, own), _ = history(keep(3, 2.0), "ch07:transpose", tmp_path)

    assert [line[2] for series in (own, of_project) for line in lines_of_series(series)] == [
        f"harness {'a' * 10}; pairs {'b' * 10}",
        f"harness {'a' * 10}; pairs without a commit",
        "a" * 10,
    ]
    assert [point["commit"] for series in as_json([own, of_project]) for point in series["points"]] == ["b" * 10, "", "a" * 10]


def test_a_change_of_the_harness_is_looked_for_in_its_own_repository(keep, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(report_history, "git_in", lambda flag, folder, *words: asked.append(folder) or CompletedProcess(words, 1, "", ""))
    pairs = {"commit": "c" * 40, "dirty": False}
    keep(1, 2.0, commit="a" * 40, root=pairs)
    found = changes(keep(2, 1.8, commit="b" * 40, root=pairs), tmp_path)

    assert asked == [PROJECT_ROOT]
    assert found[1][1][0] == f"code: the harness: commit {'a' * 10} to {'b' * 10}, of which this checkout cannot tell the difference"


def test_what_did_not_move_is_noise(keep, tmp_path):
    keep(1, 2.0)
    assert changes(keep(2, 2.001, clock=1000.0), tmp_path)[1][0] == "noise"


def test_it_is_shown_as_lines_a_page_and_json(keep, tmp_path, capsys):
    keep(1, 2.0)
    runs = keep(2, 1.8, clock=1500.0)
    keep(3, 3.0, target="ch08:other")
    (runs / "day_4").mkdir()
    (runs / "day_4" / RUN_FILE).write_text("{")
    assert run_command_line(["history", "ch07", "--runs", str(runs), "--html", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr()
    assert "2026-01-02 10:00  1.80" in said.out
    assert "NVIDIA H200 GPU-11111111" in said.out
    assert ": clock (SM clock 1980 to 1500 MHz)" in said.out
    assert "ch08" not in said.out
    assert "left out: " in said.err
    text = (tmp_path / "page.html").read_text()
    assert text.count("<circle") == 2
    assert "SM clock 1980 to 1500 MHz" in text
    assert run_command_line(["history", "--runs", str(runs), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["name"], len(each["points"])) for each in found] == [("ch07:transpose", 2), ("ch08:other", 1)]
    series, problems = history(runs, None, tmp_path)
    assert len(problems) == 1
    assert len(as_json(series)) == len(series) == page(series).count("<h2>") == 2
    assert len(lines_of_series(series[0])) == 2


def test_what_was_never_timed_is_told(keep, tmp_path):
    with pytest.raises(BenchmarkError, match="found no run with a timed row; expected a folder of runs"):
        history(tmp_path, None, tmp_path)
    with pytest.raises(BenchmarkError, match=r"target 'ch09:x': found no time of it in .*; expected one of ch07:transpose"):
        history(keep(1, 2.0), "ch09:x", tmp_path)
