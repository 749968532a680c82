"""The report on profiles, in every form of its command: folders of runs and of targets, and ncu's tables."""

import pytest

from common.python.report.run_folder import RunFolder
from common.python.results import Share, SideProfile
from common.python.settings import Settings
from tests.support.factories import a_row, a_run, a_side, a_timing
from tests.support.profiles import BEFORE, profiled_row
from tools.analysis.deep_profiling_report import main

CSV = """"ID","Kernel Name","dram__bytes.sum","gpu__time_duration.sum"
"","","byte","ns"
"0","copy(float *)","{bytes}","{time}"
"""


@pytest.fixture
def run(tmp_path):
    """A run with a profiled row, its share of the ceiling known, and one that was not profiled."""
    timing = a_timing()
    shares = {side: Share(key="dram", share=0.881, ceiling_ns=1000.0, floor_ns=1000.0, at_held_clock=None) for side in timing.time_ns}
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "20260102_030405")
    folder.write_pair(profiled_row(timings={"default": timing.model_copy(update={"shares": shares})}))
    folder.write_pair(a_row("ch07:copy"))
    folder.write_run(a_run())
    return folder.path


@pytest.fixture
def tables(tmp_path):
    paths = []
    for name, count, time in (("old", "2,000", "84,700"), ("new", "1,000", "36,700")):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(CSV.format(bytes=count, time=time))
    return paths


@pytest.mark.parametrize("part", ["", "ch07_transpose"])
def test_a_run_or_a_target_of_it_compares_its_sides(run, capsys, part):
    assert main([str(run / part), "--print-markdown"]) == 0
    text = capsys.readouterr().out
    assert "| ch07:transpose baseline | 1 | 84.7 µs | 256 MiB |  |  |  | 20.0 % |" in text
    assert "| 88.1 % of dram |" in text
    assert "## ch07:transpose baseline → ch07:transpose optimized" in text
    assert "| dram__bytes.sum | 256 MiB | 128 MiB | 0.50x |" in text
    assert "| ch07:transpose baseline | nsys | 2 | 3 | 5.00 µs | 100 µs | 10 % | 50 % |" in text
    assert "ch07:copy" not in text


def test_a_second_folder_is_compared_side_by_side_with_the_first(run, tmp_path, capsys):
    other = RunFolder.create(Settings(artifacts_dir=tmp_path / "other"), "20260102_030405")
    other.write_pair(a_row("ch07:vectorized", sides={"optimized": a_side(profile=SideProfile(counters=BEFORE)), "baseline": a_side()}))
    assert main([str(run), str(tmp_path / "other" / "ch07_vectorized"), "--print-markdown"]) == 0
    text = capsys.readouterr().out
    assert "## ch07:transpose optimized → ch07:vectorized optimized" in text
    assert "| dram__bytes.sum | 128 MiB | 256 MiB | 2.00x |" in text


def test_two_sides_are_compared_with_each_other(run, capsys):
    assert main([str(run / "ch07_transpose" / side) for side in ("baseline", "optimized")] + ["--print-markdown"]) == 0
    text = capsys.readouterr().out
    assert "## ch07:transpose baseline → ch07:transpose optimized" in text
    assert "| dram__bytes.sum | 256 MiB | 128 MiB | 0.50x |" in text


def test_a_run_is_compared_with_another_target_by_target(run, tmp_path, capsys):
    other = RunFolder.create(Settings(artifacts_dir=tmp_path / "other"), "20260102_030405")
    for row in (profiled_row(), profiled_row(target="ch07:vectorized")):
        other.write_pair(row)
    other.write_run(a_run())
    assert main([str(other.path), str(run / "run.json"), "--print-markdown"]) == 0
    compared = [line for line in capsys.readouterr().out.splitlines() if line.startswith("## ") and "→" in line]
    mine, theirs = f"{other.path}: ch07:transpose", f"{run / 'run.json'}: ch07:transpose"
    assert compared == [
        f"## {mine} baseline → {mine} optimized",
        "## ch07:vectorized baseline → ch07:vectorized optimized",
        f"## {theirs} baseline → {theirs} optimized",
        f"## {mine} baseline → {theirs} baseline",
        f"## {mine} optimized → {theirs} optimized",
    ]


def test_why_a_side_is_faster_stands_over_its_counters(run, capsys):
    assert main([str(run), "--print-markdown"]) == 0
    assert "\nWhy optimized is faster: no unit was busy for so much less time, so its warps waited less" in capsys.readouterr().out


def test_sides_in_one_table_of_ncu_are_told_apart_by_their_ranges(tmp_path, capsys):
    path = tmp_path / "profile_counters.csv"
    lines = [
        f'"{number}"," ""{number}:<default domain>:ch07:copy/{side}:none:none:RGB"" ","copy(float *)","{count}","{time}"'
        for number, (side, count, time) in enumerate([("baseline", 2000, 84700), ("optimized", 1000, 36700)])
    ]
    header = '"ID","Id:Domain:Start/Stop_Range:PL_Type","Kernel Name","dram__bytes.sum","gpu__time_duration.sum"\n"","","","byte","ns"\n'
    path.write_text(header + "\n".join(lines) + "\n")
    assert main(["--ncu-csv", str(path), "--print-markdown"]) == 0
    text = capsys.readouterr().out
    assert "| ch07:copy baseline | 1 | 84.7 µs | 1.95 KiB |" in text
    assert "## ch07:copy baseline → ch07:copy optimized" in text


def test_tables_of_ncu_are_compared_with_the_first(tables, capsys):
    assert main([word for path in tables for word in ("--ncu-csv", str(path))] + ["--print-markdown"]) == 0
    text = capsys.readouterr().out
    assert "| old | 1 | 84.7 µs | 1.95 KiB |" in text
    assert "## old → new" in text
    assert "| dram__bytes.sum | 1.95 KiB | 1000 B | 0.50x |" in text


def test_unless_it_is_printed_the_report_lies_beside_what_it_is_about(run, tables, capsys):
    assert main([str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'profile_report.md'}\n"
    assert (run / "profile_report.md").read_text().startswith("# Profiles\n")
    assert main(["--ncu-csv", str(tables[0])]) == 0
    assert (tables[0].parent / "profile_report.md").exists()


def test_equal_sides_have_no_counter_that_moved(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text(CSV.format(bytes="1,000", time="1"))
    assert main(["--ncu-csv", str(path), "--ncu-csv", str(path), "--print-markdown"]) == 0
    assert "No counter moved." in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["{tmp}"], ["--ncu-csv", "{tmp}/none.csv"]])
def test_what_cannot_be_read_is_one_sentence(tmp_path, capsys, arguments):
    assert main([argument.format(tmp=tmp_path) for argument in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert "; expected" in error
