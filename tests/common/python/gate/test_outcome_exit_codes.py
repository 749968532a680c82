"""Rows earn the exit code that the design names, the worst first."""

import pytest

from common.python.errors import ExitCode, Status
from common.python.gate.outcome import exit_code_of, worst_of
from common.python.results import StopReason
from tests.support.factories import a_change, a_failure, a_proof, a_row, a_timing, a_verdict


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([Status.PASSED, Status.SKIPPED], ExitCode.GOOD),
        ([Status.SKIPPED], ExitCode.NOTHING_MEASURED),
        ([], ExitCode.NOTHING_MEASURED),
        ([Status.PASSED, Status.TIMEOUT], ExitCode.BROKEN),
        ([Status.PASSED, Status.CRASHED, Status.IMPLAUSIBLE], ExitCode.WRONG),
    ],
)
def test_the_worst_row_decides_the_exit_code(statuses, code):
    rows = [a_row() if status is Status.PASSED else a_failure(status) for status in statuses]

    assert exit_code_of(rows) == code
    assert exit_code_of(rows, interrupted=True) == ExitCode.INTERRUPTED


def test_every_status_that_is_neither_passed_nor_skipped_fails_the_run():
    for status in set(Status) - {Status.PASSED, Status.SKIPPED}:
        assert exit_code_of([a_row(), a_failure(status)]) in (ExitCode.WRONG, ExitCode.BROKEN), status


def test_proofs_alone_are_success_only_where_that_was_asked_for():
    proven, unchecked = (a_failure(Status.SKIPPED, proofs=(a_proof(state),)) for state in ("proven", "unchecked"))

    assert exit_code_of([proven], proofs_only=True) == ExitCode.GOOD
    assert exit_code_of([unchecked], proofs_only=True) == ExitCode.NOTHING_MEASURED
    assert exit_code_of([proven]) == ExitCode.NOTHING_MEASURED


@pytest.mark.parametrize(
    ("kind", "flags", "code"),
    [
        ("SAME", {}, ExitCode.GOOD),
        ("IMPROVED", {"fail_on_inconclusive": True}, ExitCode.GOOD),
        ("REGRESSED", {}, ExitCode.REGRESSION),
        ("INCONCLUSIVE", {}, ExitCode.GOOD),
        ("INCONCLUSIVE", {"fail_on_inconclusive": True}, ExitCode.INCONCLUSIVE),
        ("SAME", {"require_expectations": True}, ExitCode.GOOD),
    ],
)
def test_a_verdict_decides_the_exit_code_of_a_row_that_passed(kind, flags, code):
    row = a_row(verdicts={"default": a_verdict(kind, changes={"speedup": a_change(kind)})})

    assert exit_code_of([row], **flags) == code
    assert exit_code_of([row, a_failure(Status.CRASHED)], **flags) == ExitCode.BROKEN


def test_a_new_row_is_good_unless_something_had_to_be_gated():
    rows = [a_row(verdicts={"default": a_verdict("NEW", "not gated")})]

    assert exit_code_of(rows) == ExitCode.GOOD
    assert exit_code_of(rows, require_expectations=True) == ExitCode.NOTHING_MEASURED
    assert exit_code_of([a_row()], require_expectations=True) == ExitCode.NOTHING_MEASURED


def test_a_regression_that_was_accepted_is_good():
    assert exit_code_of([a_row(verdicts={"default": a_verdict("REGRESSED", accepted=True)})]) == ExitCode.GOOD


def test_a_throttled_row_says_that_the_machine_is_unfit_before_anything_else_but_an_interrupt():
    throttled = a_row(timings={"default": a_timing(stop_reason=StopReason.THROTTLED)})

    assert exit_code_of([throttled, a_failure(target="ch07:other")]) == ExitCode.UNFIT
    assert exit_code_of([throttled], interrupted=True) == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 5], 5),
        ([7, 2, 4, 0], 4),
        ([4, 6], 6),
        ([6, 130, 8], 130),
        ([1, 2], 2),
    ],
)
def test_of_several_commands_the_worst_is_told_and_not_the_largest_number(codes, worst):
    assert worst_of(codes) == worst


def test_every_exit_code_but_good_is_worse_than_good():
    assert [code for code in ExitCode if worst_of((0, code)) is not code] == []
