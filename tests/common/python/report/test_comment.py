"""A comment on a pull request: what moved comes first, with its interval; what did not is counted, and nothing breaks the table."""

import pytest

from common.python.errors import ExitCode, Status
from common.python.report.comment import MARK, MOST_ROWS, comment
from tests.support.factories import a_change, a_failure, a_row, a_run, a_verdict


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


def test_a_run_in_which_nothing_moved_has_no_table():
    text = comment(
        a_run(exit_code=0), [judged("ch07:same", "SAME"), a_row("ch07:new", verdicts={"default": a_verdict("NEW", "not gated")})]
    )

    assert "### Benchmarks: nothing got slower\n" in text
    assert "| --- |" not in text
    assert "1 as expected, 1 new, so not gated" in text


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
    text = comment(a_run(exit_code=4), rows)

    assert len(text) < 65_536
    assert len(table_of(text)) == MOST_ROWS
    assert (f"{count - MOST_ROWS} more rows moved: see report.md." in text) == (count > MOST_ROWS)
