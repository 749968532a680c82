"""Whole runs of a ladder, on synthetic units: a rung that became slower fails the run by its name, and one that became faster does not."""

import re

import pytest

from common.python.errors import ExitCode
from common.python.gate.expectations import read_expectations
from tests.support.factories import recorded_ladder
from tests.tools.cli.recorded_bench import SIDE, WORKLOAD

# A ladder, one of whose rungs is another pair's baseline.
LADDER_NS = {"baseline": 80_000.0, "once": 60_000.0, "baseline_other": 50_000.0, "optimized": 40_000.0}
RUNGS = ["rung once over both ends", "rung baseline_other over both ends"]


def a_ladder(seed, **slower_by):
    times = {side: ns * (1 + slower_by.get(side, 0.0) / 100) for side, ns in LADDER_NS.items()}
    return {"units": recorded_ladder(times, count=24, deviation=0.002, seed=seed)}


@pytest.fixture
def climbing(bench, root):
    """A run of ch07:add with a ladder, with what is expected of it accepted."""
    workload = WORKLOAD.replace("Workload(\n", 'Workload(\n    ladder=("once", "ch08/baseline_other.py"),\n', 1)
    (root / "ch07" / "workload_add.py").write_text(workload)
    (root / "ch07" / "optimized_add_once.py").write_text(SIDE.format("Optimized", "1 * 1", "1 * 1"))
    (root / "ch08").mkdir()
    for file in ("workload", "baseline", "optimized"):
        (root / "ch08" / f"{file}_other.py").write_text(WORKLOAD if file == "workload" else SIDE.format(file, "(2 - 1)", "(2 - 1)"))

    def run(*flags, measured):
        return bench.run("--targets", "ch07:add", *flags, measured=measured)

    assert run("--accept-regressions", measured=[a_ladder(1)]) == ExitCode.GOOD
    return run


@pytest.mark.parametrize(
    ("slower_by", "figure"),
    [
        ({"once": 3}, RUNGS[0]),
        ({"baseline_other": 3}, RUNGS[1]),
        ({"once": -3, "baseline_other": 3}, RUNGS[1]),
        ({"optimized": 3}, "speedup"),
    ],
)
def test_a_side_of_a_ladder_that_is_three_percent_slower_is_red_by_its_name_and_exits_2(climbing, bench, slower_by, figure):
    assert climbing(measured=[a_ladder(2, **slower_by), a_ladder(3, **slower_by)]) == ExitCode.REGRESSION
    verdict = bench.rows["ch07:add"]["verdicts"]["default"]
    assert (verdict["kind"], verdict["confirmed"]) == ("REGRESSED", True)
    assert [name for name, change in verdict["changes"].items() if change["kind"] == "REGRESSED"] == [figure]
    assert re.search(rf"ch07:add: REGRESSED: {figure} -[23]\.\d* % .*, beyond 0.5 %.*; a second measurement agrees: {figure} -", bench.said)
    assert figure in (bench.folder / "junit.xml").read_text()


@pytest.mark.parametrize("side", ["once", "baseline_other", "optimized"])
def test_a_step_that_became_faster_makes_nothing_red(climbing, bench, side):
    assert climbing(measured=[a_ladder(2, **{side: -3})]) == ExitCode.GOOD
    assert (bench.verdict(), bench.measured) == ("IMPROVED", 1)


def test_a_rung_that_is_red_once_only_is_inconclusive(climbing, bench):
    assert climbing(measured=[a_ladder(2, once=3), a_ladder(3)]) == ExitCode.GOOD
    assert bench.verdict() == "INCONCLUSIVE"


def test_a_ladder_that_is_as_it_was_is_the_same_at_every_rung_and_shown(climbing, bench):
    assert climbing(measured=[a_ladder(2)]) == ExitCode.GOOD
    verdict = bench.rows["ch07:add"]["verdicts"]["default"]
    assert list(verdict["changes"]) == ["speedup", *RUNGS]
    assert verdict["sentence"].endswith("within 0.5 %, and no rung is worse")
    rungs = bench.rows["ch07:add"]["timings"]["default"]["rungs"]
    assert list(rungs) == ["once", "baseline_other", "optimized"]
    assert [rung["estimate"] for rung in rungs.values()] == pytest.approx([80 / 60, 60 / 50, 50 / 40], rel=0.003)
    (_, *lines) = [line for line in bench.said.splitlines() if "over the rung before" in line or "└" in line]
    assert [re.search(r"└ (\w+).* (\S+x) ", line).groups() for line in lines] == [("once", "1.334x"), ("baseline_other", "1.200x")]


def test_a_new_rung_is_not_gated_until_it_is_accepted(climbing, bench, root):
    workload = root / "ch07" / "workload_add.py"
    workload.write_text(workload.read_text().replace('ladder=("once", "ch08/baseline_other.py")', 'ladder=("once",)'))
    without = {side: ns for side, ns in LADDER_NS.items() if side != "baseline_other"}
    measured = [{"units": recorded_ladder(without, count=24, deviation=0.002, seed=1)}]
    assert climbing("--accept-regressions", measured=measured) == ExitCode.GOOD
    workload.write_text(workload.read_text().replace('ladder=("once",)', 'ladder=("once", "ch08/baseline_other.py")'))
    measured = [a_ladder(2)]

    assert climbing(measured=measured) == ExitCode.GOOD
    assert list(bench.rows["ch07:add"]["verdicts"]["default"]["changes"]) == ["speedup", RUNGS[0]]
    assert "; nothing is expected of rung baseline_other yet" in bench.said
    assert climbing("--accept-regressions", measured=measured) == ExitCode.GOOD
    assert climbing(measured=measured) == ExitCode.GOOD
    assert "nothing is expected" not in bench.said


def test_a_rung_that_is_too_uncertain_is_left_out_of_what_is_accepted(climbing, bench, root):
    steady = recorded_ladder(LADDER_NS, count=24, deviation=0.002, seed=4)
    wild = recorded_ladder({"once": 60_000.0}, count=24, deviation=0.02, seed=5)
    units = tuple(unit.model_copy(update={"blocks": unit.blocks | other.blocks}) for unit, other in zip(steady, wild, strict=True))

    assert climbing("--accept-regressions", measured=[{"units": units}]) == ExitCode.GOOD
    kept = read_expectations(root / "ch07" / "expectations_h200.json").pairs["add"]["default"]
    assert list(kept.rungs) == ["baseline_other", "optimized"]
    assert f"{RUNGS[0]} is not accepted: found a half-width of " in bench.said
    assert climbing(measured=[a_ladder(2)]) == ExitCode.GOOD
    assert "; nothing is expected of rung once yet" in bench.said
