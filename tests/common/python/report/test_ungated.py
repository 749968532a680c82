"""Why a run that had to gate something exits 5 is one sentence, the same wherever the run speaks."""

import pytest

from common.python.errors import ExitCode, Status
from common.python.report.documents import outcome_of
from common.python.report.tables import junit
from common.python.report.ungated import exit_reason
from common.python.settings import Settings
from tests.common.python.report.test_terminal import shown
from tests.support.factories import a_change, a_failure, a_row, a_run, a_timing, a_verdict, an_interval

CPU = a_row("mine:softmax", timings={"cpu": a_timing(device="cpu")}, ungated={"cpu": "a CPU's time is never gated"})
CPU_SAID = (
    "nothing was gated: mine:softmax @cpu: a CPU's time is never gated; "
    "the gate needs a GPU, and on a CPU there is pytest's --gpu-expectations"
)


def new(target):
    return a_row(target, verdicts={"default": a_verdict("NEW", "not gated: nothing is expected of it on B200 yet")})


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([CPU], CPU_SAID),
        (
            [new(f"ch07:{name}") for name in "abcde"],
            "nothing was gated: ch07:a, ch07:b, ch07:c and 2 more: nothing is expected of it on B200 yet",
        ),
        ([a_row("ch10:flash", timings={})], "nothing was gated: ch10:flash: it was not timed"),
        ([a_row("ch10:old")], "nothing was gated: ch10:old: it has no verdict"),
        ([a_failure(Status.SKIPPED)], "no target passed (1 target: 1 SKIPPED)"),
        ([], "no target passed (no target was run)"),
    ],
)
def test_the_reason_names_targets_and_why(rows, reason):
    assert exit_reason(ExitCode.NOTHING_MEASURED, rows) == reason


@pytest.mark.parametrize("code", [None, ExitCode.GOOD, ExitCode.REGRESSION])
def test_another_exit_code_is_explained_by_its_rows(code):
    assert exit_reason(code, [CPU]) == ""


def test_it_is_the_last_line_and_in_every_document():
    run = a_run(exit_code=5)

    assert shown([CPU], 140, exit_code=5).rstrip().splitlines()[-1] == f"exit 5: {CPU_SAID}"
    assert outcome_of(run, [CPU], run.root, ExitCode.NOTHING_MEASURED).exit_reason == CPU_SAID
    assert f"exit code 5: {CPU_SAID}" in junit(run, [CPU])
    assert outcome_of(run, [CPU], run.root, ExitCode.GOOD).exit_reason == ""


def accepted(target):
    return a_row(target, verdicts={"default": a_verdict("NEW", "not gated: nothing is expected of it yet; accepted", accepted=True)})


REFUSED = CPU.model_copy(update={"notes": ("@cpu is not accepted: a CPU's time is never gated",)})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([REFUSED], "accepted 0 of 1: mine:softmax @cpu: a CPU's time is never gated"),
        ([accepted("ch07:a"), accepted("ch07:b")], "accepted 2 of 2"),
        (
            [accepted("ch07:a"), REFUSED, a_row("ch10:flash", timings={}), a_failure(Status.SKIPPED, target="ch10:tma")],
            "accepted 1 of 4: mine:softmax @cpu: a CPU's time is never gated; ch10:flash: it was not timed; ch10:tma: it is SKIPPED",
        ),
    ],
)
def test_a_run_that_was_to_accept_ends_with_how_much_it_accepted_and_why_not_more(rows, said):
    assert shown(rows, 200, settings=Settings(accept_regressions=True)).rstrip().splitlines()[-1] == said
    assert "accepted 0" not in shown(rows, 200)


SLOWER = {"baseline": 25_900.0, "optimized": 100_000.0}
SLOWER_SAID = "optimized is slower than baseline: 0.259x [0.229, 0.289]"


def of_cpu(sides_ns, **changes):
    return CPU.model_copy(update={"timings": {"cpu": a_timing(sides_ns, device="cpu", **changes)}})


@pytest.mark.parametrize("verbose", [False, True])
def test_a_side_that_is_slower_is_told_where_no_gate_tells_it(verbose):
    slower = {"default": a_timing(SLOWER)}
    said = shown([of_cpu(SLOWER), new("ch07:new").model_copy(update={"timings": slower})], 140, verbose=verbose)

    assert f"mine:softmax @cpu: {SLOWER_SAID}; not gated: a CPU's time is never gated\n" in said
    assert f"ch07:new: {SLOWER_SAID}\n" in said
    assert said.count("a CPU's time is never gated") == 1


def test_a_gain_that_is_none_is_worse_and_not_slower():
    figures, gains = dict.fromkeys(SLOWER, an_interval(3.0, 0.1)), {"optimized": an_interval(0.5, 0.01)}
    timing = a_timing(goal="memory", unit="B", figures=figures, gains=gains)
    said = shown([a_row("ch07:bytes", timings={"default": timing}, ungated={"default": "a half"})], 140)
    assert "ch07:bytes: optimized is worse than baseline in memory: 0.500x [0.490, 0.510]; not gated: a half\n" in said


@pytest.mark.parametrize("row", [CPU, of_cpu(dict.fromkeys(SLOWER, 1e5)), of_cpu({"baseline": 1e5})])
def test_nothing_is_told_of_a_side_that_may_be_as_fast_or_is_alone(row):
    assert "slower than baseline" not in shown([row], 140)


def test_a_slower_side_that_is_gated_has_a_verdict_and_no_more():
    gated = a_row(timings={"default": a_timing(SLOWER)}, verdicts={"default": a_verdict("SAME", changes={"speedup": a_change("SAME")})})
    assert "slower than baseline" not in shown([gated], 140)


def test_verbose_lists_every_timing_without_a_verdict():
    gated = a_row("ch07:same", verdicts={"default": a_verdict("SAME", changes={"speedup": a_change("SAME")})})
    said = shown([CPU, gated], 140, verbose=True)

    assert "mine:softmax @cpu: not gated: a CPU's time is never gated" in said
    assert "ch07:same: not gated" not in said
    assert "not gated" not in shown([CPU, gated], 140)
