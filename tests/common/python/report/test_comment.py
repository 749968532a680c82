"""A comment on a pull request: what moved comes first, with its interval; what did not is counted, and nothing breaks the table."""

import pytest

from common.python.errors import ExitCode, Status
from common.python.report.comment import MARK, MOST_ROWS, comment
from common.python.settings import Settings
from tests.support.factories import a_change, a_failure, a_row, a_run, a_timing, a_verdict


def judged(target, kind, percent=0.1):
    return a_row(target, verdicts={"default": a_verdict(kind, changes={"speedup": a_change(kind, percent)})})


def table_of(text):
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ch")]


def test_what_moved_is_a_row_with_its_change_and_interval_and_the_worst_comes_first():
    rows = [judged("ch07:faster", "IMPROVED", 4.0), judged("ch07:same", "SAME"), judged("ch07:slower", "REGRESSED", -3.0)]
    text = comment(a_run(exit_code=ExitCode.REGRESSION), rows)

    assert text.startswith(f"{MARK}\n### Benchmarks: slower than expected (exit code 2)\n")
    assert table_of(text) == [
        ["ch07:slower", "2.31x [2.28, 2.34]", "speedup", "-3.0 % [-3.2, -2.8]", "0.5 %", "REGRESSED"],
        ["ch07:faster", "2.31x [2.28, 2.34]", "speedup", "+4.0 % [+3.8, +4.2]", "0.5 %", "IMPROVED"],
    ]
    assert "Timings that did not move: 1 as expected." in text
    assert "NVIDIA H200" in text


def test_a_comment_says_what_the_baseline_is_where_it_is_not_the_pairs_own():
    text = comment(a_run(Settings(against="HEAD~1"), against="a" * 40, exit_code=0), [judged("ch07:same", "SAME")])

    assert "**Baseline**: each pair's own optimized side at HEAD~1 (commit aaaaaaaaaa).\n" in text
    assert "Baseline" not in comment(a_run(exit_code=0), [judged("ch07:same", "SAME")])


def test_a_run_in_which_nothing_moved_has_no_table():
    text = comment(a_run(exit_code=0), [judged("ch07:same", "SAME")])

    assert "### Benchmarks: nothing got slower\n" in text
    assert "| --- |" not in text
    assert "Timings that did not move: 1 as expected." in text
    assert "gated" not in text


def new(target, why="nothing is expected of it on H200 yet"):
    return a_row(target, verdicts={"default": a_verdict("NEW", f"not gated: {why}")})


def never_gated(target):
    return a_row(target, timings={"cpu": a_timing(device="cpu")}, ungated={"cpu": "a CPU's time is never gated"})


def test_what_was_not_gated_is_listed_with_its_change_and_never_said_not_to_have_moved():
    slower = a_row("ch07:slower", verdicts={"default": a_verdict("UNGATED", "timed on a CPU: speedup -22.6 % [-32.5, -11.3]")})
    text = comment(a_run(exit_code=0), [slower, never_gated("ch01:gemm")])

    assert "### Benchmarks: nothing was gated\n" in text
    assert [line for line in text.splitlines() if line.startswith("- ")] == [
        "- ch07:slower: 2.31x [2.28, 2.34]; timed on a CPU: speedup -22.6 % [-32.5, -11.3]",
        "- ch01:gemm @cpu: 2.31x [2.28, 2.34]; a CPU's time is never gated",
    ]
    assert "did not move" not in text
    assert "got slower" not in text


def test_beside_rows_that_were_gated_those_that_were_not_are_no_part_of_the_verdict():
    text = comment(a_run(exit_code=0), [judged("ch07:same", "SAME"), new("ch07:new")])

    assert "### Benchmarks: nothing that was gated got slower\n" in text
    assert "- ch07:new: 2.31x [2.28, 2.34]; nothing is expected of it on H200 yet" in text
    assert "Timings that did not move: 1 as expected." in text


def test_a_run_that_times_nothing_does_not_say_that_nothing_got_slower():
    assert "### Benchmarks: nothing was timed\n" in comment(a_run(exit_code=0), [a_row(timings={})])


def test_exit_5_says_why_nothing_was_gated():
    text = comment(a_run(exit_code=5), [never_gated("ch01:gemm")])

    assert "### Benchmarks: nothing was gated (exit code 5)\n" in text
    assert (
        "Exit code 5: nothing was gated: ch01:gemm @cpu: a CPU's time is never gated; the gate needs a GPU, and on a CPU there is " in text
    )


def test_a_failure_is_told_and_a_skip_is_only_counted():
    rows = [a_failure(reason="y[3] is *1*\nexpected 2 " + "x" * 1000), a_failure(Status.SKIPPED, target="ch07:skipped", reason="no GPU")]
    text = comment(a_run(exit_code=ExitCode.WRONG), rows)

    (line,) = [line for line in text.splitlines() if line.startswith("- ")]
    assert line.startswith(r"- **WRONG_RESULT** ch07:broken: y[3] is \*1\* expected 2 xxx")
    assert len(line) < 400
    assert "no GPU" not in text
    assert "1 SKIPPED" in text


def test_an_interrupted_run_names_what_it_did_not_reach():
    run = a_run(exit_code=130, interrupted=True, folders={"ch07:same": "a", "ch07:left": "b"})

    text = comment(run, [judged("ch07:same", "SAME")])
    assert "### Benchmarks: interrupted (exit code 130)" in text
    assert "Not reached: ch07:left." in text


@pytest.mark.parametrize("count", [MOST_ROWS, 500])
def test_however_much_moved_the_comment_stays_below_what_github_takes(count):
    rows = [judged(f"ch07:pair_{number}", "REGRESSED", -3.0) for number in range(count)]
    rows += [a_failure(target=f"ch07:broken_{number}", reason="x" * 5000) for number in range(count)]
    rows += [new(f"ch07:new_{number}", "x" * 300) for number in range(count)]
    text = comment(a_run(exit_code=4), rows)

    assert len(text) < 65_536
    assert len(table_of(text)) == MOST_ROWS
    assert (f"{count - MOST_ROWS} more rows moved: see report.md." in text) == (count > MOST_ROWS)
    assert (f"{count - MOST_ROWS} more were not gated: see report.md." in text) == (count > MOST_ROWS)
