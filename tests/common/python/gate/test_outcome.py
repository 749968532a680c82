"""Chance among many rows is not red, and neither is what a second measurement does not see."""

import pytest

from common.python.errors import Status
from common.python.gate.outcome import confirmed, is_to_be_confirmed, red_twice, standing, unconfirmed
from common.python.profile.explain import why_red
from common.python.results import SideProfile
from tests.support.factories import a_change, a_failure, a_row, a_side, a_timing, a_verdict, an_interval


def a_judged_row(kind, number=0, p_worse=0.5, **changes):
    figures = {"speedup": a_change(kind, -3.0, p_worse=p_worse)}
    return a_row(f"ch07:pair{number}", verdicts={"default": a_verdict(kind, f"speedup {kind}", changes=figures, **changes)})


def kinds(rows):
    return [row.verdicts["default"].kind for row in rows]


def test_a_red_row_that_chance_may_have_made_among_so_many_is_inconclusive():
    rows = [a_judged_row("REGRESSED", 0, p_worse=0.004), *(a_judged_row("SAME", number) for number in range(1, 100))]

    assert kinds(standing(rows))[0] == "INCONCLUSIVE"
    assert standing(rows)[0].verdicts["default"].sentence == "speedup REGRESSED; p = 0.004 does not stand among 100 gated figures at 1%"
    assert kinds(standing(rows[:2])) == ["REGRESSED", "SAME"]


def test_red_rows_that_are_many_support_each_other():
    rows = [a_judged_row("REGRESSED", number, p_worse=0.004) for number in range(50)] + [a_judged_row("SAME", 99)] * 50

    assert set(kinds(standing(rows))[:50]) == {"REGRESSED"}


def test_a_row_stays_red_by_any_of_its_figures_that_stands():
    figures = {"speedup": a_change("SAME", p_worse=0.9), "share of dram of baseline": a_change("REGRESSED", -9.0, p_worse=1e-9)}
    row = a_row(verdicts={"default": a_verdict("REGRESSED", changes=figures)})

    assert standing([row]) == [row]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (a_judged_row("REGRESSED"), True),
        (a_judged_row("REGRESSED", confirmed=True), False),
        (a_judged_row("REGRESSED", accepted=True), False),
        (a_judged_row("IMPROVED"), False),
        (a_row(), False),
    ],
)
def test_what_is_red_and_neither_confirmed_nor_accepted_is_measured_again(row, expected):
    assert is_to_be_confirmed(row) is expected


def test_red_twice_is_confirmed_and_red_once_is_not():
    first, second = a_judged_row("REGRESSED"), a_judged_row("SAME")
    twice, once = confirmed(first, first).verdicts["default"], confirmed(first, second).verdicts["default"]

    assert (twice.kind, twice.confirmed) == ("REGRESSED", True)
    assert twice.sentence == "speedup REGRESSED; a second measurement agrees: speedup REGRESSED"
    assert (once.kind, once.confirmed) == ("INCONCLUSIVE", False)
    assert once.sentence == "speedup REGRESSED; a second measurement says SAME: speedup SAME"


def test_two_measurements_that_are_red_by_different_figures_do_not_agree():
    first, second = (
        a_row(verdicts={"default": a_verdict("REGRESSED", f"{name} -3 %", changes={name: a_change("REGRESSED", -3.0)})})
        for name in ("rung naive over both ends", "rung tiled over both ends")
    )
    verdict = confirmed(first, second).verdicts["default"]

    assert (verdict.kind, verdict.confirmed) == ("INCONCLUSIVE", False)
    assert verdict.sentence == "rung naive over both ends -3 %; a second measurement says REGRESSED: rung tiled over both ends -3 %"


def test_the_other_shapes_of_a_red_row_keep_their_verdicts():
    verdicts = {"small": a_verdict("SAME"), "large": a_judged_row("REGRESSED").verdicts["default"]}
    row = a_row(timings={shape: a_row().timings["default"] for shape in verdicts}, verdicts=verdicts)

    assert confirmed(row, row).verdicts["small"] == verdicts["small"]
    assert confirmed(row, row).verdicts["large"].confirmed


def test_a_row_that_fails_when_it_is_measured_again_has_failed():
    failure = a_failure(Status.CRASHED, target="ch07:pair0")

    assert confirmed(a_judged_row("REGRESSED"), failure) == failure


def test_red_without_time_for_a_second_measurement_is_inconclusive():
    verdict = unconfirmed(a_judged_row("REGRESSED"), "no time").verdicts["default"]

    assert (verdict.kind, verdict.sentence) == ("INCONCLUSIVE", "speedup REGRESSED; no time")


LADDER = a_timing(
    {"baseline": 8e6, "tiled": 4e6, "optimized": 2e6}, rungs={"tiled": an_interval(2.0, 0.1), "optimized": an_interval(2.0, 0.1)}
)
COUNTERS = {
    "baseline": {"dram__bytes.sum": 8.0e6, "launch__registers_per_thread": 16.0},
    "tiled": {"dram__bytes.sum": 4.0e6, "launch__registers_per_thread": 64.0, "gpu__time_duration.sum": 4e6},
    "optimized": {"dram__bytes.sum": 4.0e6, "launch__registers_per_thread": 62.0, "gpu__time_duration.sum": 2e6},
}


def a_red_ladder(*figures, counters=COUNTERS):
    sides = {side: a_side(side, profile=SideProfile(counters=found)) for side, found in counters.items()}
    verdict = a_verdict("REGRESSED", changes={name: a_change("REGRESSED", -3.0) for name in figures}, confirmed=True)
    return a_row(timings={"default": LADDER}, verdicts={"default": verdict}, sides={side: a_side(side) for side in LADDER.time_ns} | sides)


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        (
            "rung tiled over both ends",
            "tiled and baseline differ most: launch__registers_per_thread 16 → 64 (4.00x), dram__bytes.sum 7.63 MiB → 3.81 MiB (0.50x)",
        ),
        (
            "speedup",
            "optimized and baseline differ most: launch__registers_per_thread 16 → 62 (3.88x), dram__bytes.sum 7.63 MiB → 3.81 MiB (0.50x)",
        ),
        (
            "share of dram of baseline",
            "optimized and baseline differ most: launch__registers_per_thread 16 → 62 (3.88x), dram__bytes.sum 7.63 MiB → 3.81 MiB (0.50x)",
        ),
    ],
)
def test_the_counters_of_the_two_sides_of_a_red_figure_are_ranked(figure, line):
    assert why_red(a_red_ladder(figure), "default", {}) == [f"red, and by what {line}"]


def test_counters_that_were_accepted_are_ranked_by_what_became_of_them_down_to_one_percent():
    kept = {"tiled": {"dram__bytes.sum": 3.9e6, "launch__registers_per_thread": 64.0}, "library": {"dram__bytes.sum": 1.0}}
    _, line = why_red(a_red_ladder("rung tiled over both ends"), "default", kept)

    assert line == "red, and by what tiled now and as it was accepted differ most: dram__bytes.sum 3.72 MiB → 3.81 MiB (1.03x)"


def test_without_counters_there_is_nothing_to_rank():
    assert why_red(a_red_ladder("speedup", counters={}), "default", COUNTERS) == []
    assert why_red(a_red_ladder("speedup", counters={"optimized": {}}), "default", COUNTERS) == []


def test_red_twice_are_the_shapes_that_a_second_measurement_confirmed():
    assert red_twice(a_judged_row("REGRESSED", confirmed=True)) == ["default"]
    assert red_twice(a_judged_row("REGRESSED")) == []
