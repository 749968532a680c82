"""A rung of a ladder is red if it became slower itself, whatever the steps beside it did; noise alone makes none red."""

import pytest

from common.python.gate.expectations import expectation_of, keep_expectations
from common.python.gate.statistics import LEAST_UNITS, MOST_UNITS, PAIR, means_between
from common.python.gate.verdicts import Standard, name_of
from common.python.measure.stopping import StopRule
from common.python.pairs.goals import TIME
from common.python.results import OPTIMIZED, VerdictKind
from common.python.settings import Settings
from tests.support.factories import a_provenance, a_recorded_timing, a_row, an_expectation, recorded_ladder
from tests.support.plans import SHAPE, a_plan, standards_for

LADDER_NS = {"baseline": 80_000.0, "first": 70_000.0, "second": 60_000.0, "third": 50_000.0, "optimized": 40_000.0}
RUNGS = ("first", "second", "third")
RED = VerdictKind.REGRESSED


def a_ladder(seed, count=24, deviation=0.0025, **slower):
    """Synthetic units of the ladder, with sides that became slower by so many percent."""
    times = {side: ns * (1 + slower.get(side, 0.0) / 100) for side, ns in LADDER_NS.items()}
    return recorded_ladder(times, count=count, deviation=deviation, seed=seed)


@pytest.fixture
def plan(tmp_path):
    """The plan of a ladder, with what is expected of it accepted."""
    keep_expectations(tmp_path / "expectations_h200.json", "transpose", {"default": an_expectation(units=a_ladder(1), shape=SHAPE)})
    return a_plan(tmp_path, sides=tuple(LADDER_NS))


@pytest.fixture
def verdict(plan):
    """Judges a ladder, of which some sides became slower by so many percent."""
    standards = standards_for(plan)
    return lambda seed=2, **changes: standards.verdict(plan, "default", a_recorded_timing(units=a_ladder(seed, **changes)))


def of_kind(found, kind):
    """The sides whose figures are of this kind."""
    return {side for side in LADDER_NS if side != "baseline" and found.changes[name_of(side, "time")].kind == kind}


@pytest.mark.parametrize("side", RUNGS)
def test_a_rung_that_became_faster_makes_none_red(verdict, side):
    found = verdict(**{side: -3})

    assert (found.kind, of_kind(found, "IMPROVED")) == (VerdictKind.IMPROVED, {side})
    assert found.sentence.startswith(f"rung {side} over both ends +")


@pytest.mark.parametrize("side", [*RUNGS, "optimized"])
def test_a_side_that_became_slower_is_red_and_no_other(verdict, side):
    found = verdict(**{side: 3})

    assert (found.kind, of_kind(found, "REGRESSED"), of_kind(found, "IMPROVED")) == (RED, {side}, set())
    assert found.sentence.startswith("speedup -" if side == "optimized" else f"rung {side} over both ends -")


@pytest.mark.parametrize(
    ("changes", "red"),
    [
        ({"first": -3, "second": 3}, {"second"}),
        ({"first": -3, "second": 1.5}, {"second"}),  # by less than the step before it gained
        ({"first": 3, "second": 3}, {"first", "second"}),  # neither hides behind the other
        ({"first": 3, "second": 3, "third": 3}, set(RUNGS)),
        ({"third": -3, "optimized": 3}, {"optimized"}),
        ({"third": 3, "optimized": -3}, {"third"}),
        ({"baseline": -3, "second": 3}, {"second", "optimized"}),
    ],
)
def test_a_loss_is_red_whatever_the_step_before_it_did(verdict, changes, red):
    assert of_kind(verdict(**changes), "REGRESSED") == red


@pytest.mark.parametrize(
    ("changes", "red", "sentence"),
    [
        ({"baseline": -3}, {"optimized"}, "; of 3 rungs 3 worse over baseline and 0 better over optimized"),
        ({"optimized": 3}, {"optimized"}, "; of 3 rungs 0 worse over baseline and 3 better over optimized"),
        ({"optimized": -3}, set(), "; of 3 rungs 0 better over baseline and 3 worse over optimized"),
        ({"baseline": 3}, set(), "; of 3 rungs 3 better over baseline and 0 worse over optimized"),
    ],
)
def test_an_end_that_changed_is_the_speedups_matter_and_the_sentence_tells_which_it_was(verdict, changes, red, sentence):
    found = verdict(**changes)

    assert of_kind(found, "REGRESSED") == red
    assert found.kind is (RED if red else VerdictKind.IMPROVED)
    assert sentence in found.sentence


@pytest.mark.parametrize(
    ("changes", "red"),
    [
        ({"optimized": 3, "second": 3}, {"optimized"}),
        ({"baseline": 3, "second": 3}, set()),
        ({"baseline": -3, "optimized": -3}, set(RUNGS)),
    ],
)
def test_what_the_ends_themselves_hide_or_make_red_is_as_the_rule_says(verdict, changes, red):
    assert of_kind(verdict(**changes), "REGRESSED") == red


def test_a_ladder_that_is_as_it_was_is_the_same(verdict):
    found = verdict()

    assert (found.kind, set(found.changes)) == (VerdictKind.SAME, {name_of(side, "time") for side in (*RUNGS, "optimized")})
    assert found.sentence.endswith("within 0.5 %, and no rung is worse")


def test_a_rung_that_may_only_be_better_does_not_make_its_row_inconclusive(verdict):
    found = verdict(second=-0.5)

    assert (found.kind, of_kind(found, "INCONCLUSIVE")) == (VerdictKind.SAME, {"second"})


def test_a_rung_that_may_be_worse_does_and_says_what_it_would_take(verdict):
    found = verdict(seed=3, second=0.9, count=16)

    assert (found.kind, of_kind(found, "INCONCLUSIVE")) == (VerdictKind.INCONCLUSIVE, {"second"})
    assert found.sentence.startswith("cannot decide at 0.5 %: rung second over both ends -0.")
    assert "; about " in found.sentence


def test_a_rung_is_held_to_what_it_was_though_another_step_stands_before_it(plan, tmp_path):
    longer = a_plan(tmp_path, sides=("baseline", "added", "second", "third", "optimized"))

    assert standards_for(plan).of(plan, "default").gated == 4
    assert standards_for(longer).of(longer, "default").rungs.keys() == {"second", "third"}
    units = recorded_ladder({side: LADDER_NS.get(side, 65_000.0) for side in longer.sides}, count=24, seed=2)
    verdict = standards_for(longer).verdict(longer, "default", a_recorded_timing(units=units))
    assert verdict.sentence.endswith("and no rung is worse; nothing is expected of rung added yet")


def test_a_revision_is_held_to_no_change_in_the_pair_alone(plan):
    assert standards_for(plan, against="HEAD").of(plan, "default").rungs == {}


def test_at_another_goal_a_rung_is_held_to_what_it_was_at_that(tmp_path):
    def timing(**changes):
        gains = {"first": 1.2, "second": 1.5, "third": 1.8, "optimized": 2.0} | changes
        units = tuple(unit.model_copy(update={"gains": gains}) for unit in a_ladder(3))
        return a_recorded_timing(units=units, goal="memory")

    accepted = timing()
    expected = expectation_of(a_row(timings={"default": accepted}), accepted, accepted.gains["optimized"], a_provenance())
    keep_expectations(tmp_path / "expectations_h200.json", "transpose", {"default": expected})
    plan = a_plan(tmp_path, sides=tuple(LADDER_NS), goal="memory")
    faster, slower = (standards_for(plan).verdict(plan, "default", timing(first=1.3, second=second)) for second in (1.5, 1.4))

    assert faster.kind is VerdictKind.IMPROVED
    assert slower.sentence.startswith("rung second over both ends -6.667 % [")


# --- error rates, by simulation with fixed seeds

TRIALS = 200
EDGE = 0.5  # percent: the band


def stopped(standards, plan, seed, deviation, **changes):
    """The changes with which a measurement ends, by side, against as many units accepted by another, and after how many units."""
    accepted, measured = a_ladder(2 * seed, deviation=deviation), a_ladder(2 * seed + 1, deviation=deviation, **changes)
    own, rungs = means_between(accepted, TIME, [OPTIMIZED])[OPTIMIZED][PAIR], means_between(accepted, TIME, RUNGS)
    standard = Standard(own, TIME, len(RUNGS) + 1, rungs)
    standards.of = lambda *_: standard
    rule = StopRule(Settings(), standards, plan, "default")
    count = next(count for count in range(LEAST_UNITS, MOST_UNITS + 1) if rule.reason(measured[:count], 1.0, 0.0, is_held=True))
    return standard.changes(measured[:count], 0.5, None), count


def red_shares(plan, deviation, **changes):
    """In which share of many measurements each side ends red, and their mean number of units."""
    standards = standards_for(plan)
    ended = [stopped(standards, plan, seed, deviation, **changes) for seed in range(TRIALS)]
    shares = {side: sum(found[side].kind == RED for found, _ in ended) / TRIALS for side in (*RUNGS, OPTIMIZED)}
    return shares, sum(count for _, count in ended) / TRIALS


@pytest.mark.parametrize("deviation", [0.0018, 0.0035])
def test_noise_alone_makes_none_red(plan, deviation):
    shares, _ = red_shares(plan, deviation)

    assert set(shares.values()) == {0.0}


def test_the_gains_of_others_make_no_rung_red_by_chance(plan):
    shares, _ = red_shares(plan, 0.0025, first=-2, third=-1, baseline=-2)

    assert {shares[side] for side in RUNGS} == {0.0}


def test_a_rung_that_is_worse_by_the_band_is_red_as_seldom_as_a_speedup_may_be(plan):
    shares, _ = red_shares(plan, 0.0025, second=EDGE)

    assert shares["second"] <= 0.025 + 0.033  # three standard errors of so many trials
    assert shares["first"] == shares["third"] == 0.0


def test_a_planted_percent_is_caught_in_a_rung_behind_one_that_gained_as_much(plan):
    shares, _ = red_shares(plan, 0.0018, first=-1, second=1.05)

    assert shares["second"] >= 0.95
    assert shares["first"] == shares["third"] == shares["optimized"] == 0.0


def test_a_rung_at_the_edge_of_the_band_does_not_cost_a_ladder_all_its_units(plan):
    _, units = red_shares(plan, 0.0018, second=EDGE)

    assert units < 12


def test_the_interval_that_is_told_of_a_rung_covers_its_change(plan):
    standards = standards_for(plan)
    truth = -100 * 2 / 102
    found = [stopped(standards, plan, seed, 0.0025, second=2)[0]["second"].percent for seed in range(TRIALS)]

    assert sum(each.low <= truth <= each.high for each in found) >= 0.95 * TRIALS
