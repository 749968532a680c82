"""Illegal states cannot be written down."""

import pytest
from pydantic import ValidationError

from common.python.errors import Status
from common.python.results import Interval, Metrics, PairResult, ReportedMetric
from tests.support.factories import a_failure, a_proof, a_row, a_timing, a_verdict, an_interval


def test_a_legal_row_survives_json_unchanged():
    row = a_row(proofs=(a_proof(),), metrics={"optimized": {"tokens": ReportedMetric(value=3.0, unit="1/s", better="higher")}})

    assert PairResult.model_validate_json(row.model_dump_json()) == row


def test_shape_entries_keep_their_types_in_json():
    shape = PairResult.model_validate_json(a_row().model_dump_json()).timings["default"].shape

    assert [type(value) for value in shape.values()] == [int, bool, float]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_only_a_row_that_passed_carries_a_timing(status):
    with pytest.raises(ValidationError, match=f"status {status} carries a timing"):
        a_failure(status, timings={"default": a_timing()})


@pytest.mark.parametrize("reason", ["", " \n"])
def test_every_status_but_passed_has_a_reason(reason):
    with pytest.raises(ValidationError, match="every status but PASSED has one"):
        a_failure(reason=reason)


def test_a_row_that_passed_has_no_reason():
    with pytest.raises(ValidationError, match="every status but PASSED has one"):
        a_row(reason="looks fine")


def test_a_row_may_pass_without_a_timing():
    assert a_row(timings={}).status is Status.PASSED


@pytest.mark.parametrize(
    "figures",
    [
        {"verdicts": {"default": a_verdict("SAME")}},
        {"metrics": {"optimized": {"tokens": ReportedMetric(value=3.0, unit="1/s", better="higher")}}},
    ],
)
def test_a_row_that_did_not_pass_has_no_figures(figures):
    with pytest.raises(ValidationError, match="carries metrics or verdicts"):
        a_failure(**figures)


def test_a_failed_proof_makes_even_a_skipped_row_unproven():
    for make in (a_row, lambda **changes: a_failure(Status.SKIPPED, **changes)):
        with pytest.raises(ValidationError, match="that row is UNPROVEN"):
            make(proofs=(a_proof("failed"),))
        assert make(proofs=(a_proof("unchecked"),)).proofs

    assert a_failure(Status.UNPROVEN, proofs=(a_proof("failed"),)).proofs


def test_a_timed_side_is_one_of_the_sides():
    with pytest.raises(ValidationError, match=r"a timing of \['baseline', 'optimized'\]"):
        a_row(sides={})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"speedups": {"library": an_interval(2.0, 0.1)}}, "a speedup needs both times"),
        ({"speedups": {"baseline": an_interval(1.0, 0.1)}}, "a speedup needs both times"),
        ({"time_ns": {"baseline": an_interval(1.0, 1.0), "optimized": an_interval(1.0, 0.1)}}, "a time is positive"),
        ({"units": ()}, "a time comes from its samples"),
        ({"units": a_timing({"baseline": 5.0}).units}, "a time comes from its samples"),
    ],
)
def test_a_timing_without_what_it_is_derived_from_is_rejected(changes, message):
    with pytest.raises(ValidationError, match=message):
        a_timing(**changes)


@pytest.mark.parametrize(("estimate", "low", "high"), [(1.0, 1.1, 1.2), (1.3, 1.1, 1.2), (1.0, 1.2, 0.9), (1.0, 0.9, float("inf"))])
def test_an_interval_is_finite_and_holds_its_estimate(estimate, low, high):
    with pytest.raises(ValidationError):
        Interval(estimate=estimate, low=low, high=high)


def test_a_target_has_one_row():
    with pytest.raises(ValidationError, match="a target has one row"):
        Metrics(run_id="x", rows=(a_row(), a_failure(target="ch07:transpose")))


def test_a_key_that_the_document_does_not_know_is_an_error():
    with pytest.raises(ValidationError, match="Extra inputs"):
        PairResult.model_validate({**a_row().model_dump(), "speed": 2})
