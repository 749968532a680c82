"""A timing is held to what was accepted for its pair, shape, GPU and conditions, and gets the verdict that this makes."""

import re

import pytest

from common.python.gate.expectations import keep_expectations, read_expectations
from common.python.gate.noise_floor import Floor, Noise, StepClass, Trial
from common.python.gate.statistics import NO_CHANGE, Mean
from common.python.measure.goal_figures import gains_from
from common.python.results import ReportedMetric, Share, StopReason, VerdictKind
from common.python.storage import document_text
from tests.support.factories import a_provenance, a_recorded_timing, an_expectation, recorded_ladder, recorded_units
from tests.support.plans import H200, SHAPE, WITH_GPU, a_plan, standards_for


@pytest.fixture
def accepted(tmp_path):
    """Expectations of a speedup of 2 on one GPU, in the folder of the plans."""

    def keep(ratio=2.0, pair="transpose", key="h200", **changes):
        expected = an_expectation(ratio, **{"shape": SHAPE} | changes)
        keep_expectations(tmp_path / f"expectations_{key}.json", pair, {"default": expected})
        return expected

    return keep


def test_a_timing_is_held_to_the_units_accepted_for_its_gpu(accepted, tmp_path):
    expected, plan = accepted(), a_plan(tmp_path)

    standard = standards_for(plan).of(plan, "default")
    assert standard.expected == Mean.of(expected.logs)
    assert (
        standards_for(plan, machine=WITH_GPU.model_copy(update={"gpus": (H200.model_copy(update={"name": "NVIDIA H100 PCIe"}),)})).of(
            plan, "default"
        )
        is None
    )


def test_a_pair_for_two_gpus_has_expectations_of_its_own(accepted, tmp_path):
    from common.python.pairs.directives import Directives

    accepted(3.0, key="2xh200")
    plan = a_plan(tmp_path, workload_directives=Directives(needs=("gpus 2",)))
    two = WITH_GPU.model_copy(update={"gpus": (H200, H200)})

    assert standards_for(plan, machine=two).of(plan, "default") is not None
    assert standards_for(a_plan(tmp_path), machine=two).of(a_plan(tmp_path), "default") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"shape": {**SHAPE, "n": 2048}}, "shape n=1024 causal=True eps=1.0 where n=2048 causal=True eps=1.0 was accepted"),
        ({"clock": "launch"}, "clock device where launch was accepted"),
        ({"cache": "hot", "clock": "host"}, "clock device where host was accepted and cache cold where hot was accepted"),
    ],
)
def test_what_was_accepted_under_other_conditions_holds_nothing(accepted, tmp_path, changes, said):
    accepted(**changes)
    plan = a_plan(tmp_path)
    standards = standards_for(plan)
    verdict = standards.verdict(plan, "default", a_recorded_timing(ratio=1.0))

    assert standards.of(plan, "default") is None
    assert (verdict.kind, verdict.sentence) == (VerdictKind.NEW, f"not gated: {said}")


@pytest.mark.parametrize("device", ["GPU-of-another-machine", ""])
def test_a_ratio_accepted_on_another_gpu_of_the_model_is_held_to_a_wider_band(accepted, tmp_path, device):
    accepted(provenance=a_provenance(device=device))
    plan = a_plan(tmp_path)
    standards = standards_for(plan)
    as_before, off, worse = (standards.verdict(plan, "default", a_recorded_timing(ratio=ratio)) for ratio in (2.0, 2.0 * 0.967, 2.0 * 0.92))

    told = "; accepted on another NVIDIA Test, so no change under 5 % counts"
    assert (as_before.kind, off.kind, worse.kind) == (VerdictKind.SAME, VerdictKind.SAME, VerdictKind.REGRESSED)
    assert all(verdict.sentence.endswith(told) for verdict in (as_before, off, worse))
    assert off.changes["speedup"].band_percent == 5.0
    wide = standards_for(plan, gate=6.0)
    assert told not in wide.verdict(plan, "default", a_recorded_timing(ratio=2.0)).sentence


@pytest.mark.parametrize(("device", "why"), [("GPU-of-another-machine", "on another NVIDIA Test"), (H200.uuid, "in another run, .*")])
def test_a_ratio_that_launches_decide_is_its_hosts(accepted, tmp_path, device, why):
    accepted(clock="launch", provenance=a_provenance(device=device))
    plan = a_plan(tmp_path, clock="launch")
    standards = standards_for(plan)
    slower, lost = (standards.verdict(plan, "default", a_recorded_timing(ratio=ratio, clock="launch")) for ratio in (2.0 * 0.8, 2.0 * 0.6))

    assert (slower.kind, lost.kind) == (VerdictKind.SAME, VerdictKind.REGRESSED)
    assert re.fullmatch(f".*; accepted {why}, so no change under 30 % counts", slower.sentence)


@pytest.mark.parametrize("device", ["GPU-of-another-machine", H200.uuid])
@pytest.mark.parametrize(
    ("baseline_ns", "optimized_ns", "kind"),
    [
        (240_000.0, 140_000.0, VerdictKind.INCONCLUSIVE),  # the host launches faster, and the graph takes what it took
        (240_000.0, 180_000.0, VerdictKind.REGRESSED),  # and the graph is slower too
        (470_000.0, 250_000.0, VerdictKind.REGRESSED),  # the graph alone
        (470_000.0, 140_000.0, VerdictKind.SAME),
    ],
)
def test_a_faster_host_is_no_regression_and_a_slower_graph_is(accepted, tmp_path, device, baseline_ns, optimized_ns, kind):
    ratio = 470_000.0 / 140_000.0
    accepted(units=recorded_units(ratio, 470_000.0, count=12), clock="launch", provenance=a_provenance(device=device))
    plan = a_plan(tmp_path, clock="launch")
    units = recorded_units(baseline_ns / optimized_ns, baseline_ns, count=8, seed=3)
    verdict = standards_for(plan).verdict(plan, "default", a_recorded_timing(units=units, clock="launch"))

    assert verdict.kind is kind
    assert ("launches the baseline faster than then" in verdict.sentence) is (kind is VerdictKind.INCONCLUSIVE)


def test_a_ratio_accepted_on_this_gpu_is_held_to_the_gate(accepted, tmp_path):
    accepted(provenance=a_provenance(device=H200.uuid))
    plan = a_plan(tmp_path)
    verdict = standards_for(plan).verdict(plan, "default", a_recorded_timing(ratio=2.0 * 0.985))

    assert verdict.kind is VerdictKind.REGRESSED
    assert "another" not in verdict.sentence


def test_a_revision_and_the_noise_of_a_machine_are_held_to_no_change(accepted, tmp_path):
    accepted()
    plan = a_plan(tmp_path)

    for choices in ({"against": "HEAD"}, {"command": "noise"}):
        standards = standards_for(plan, **choices)
        assert standards.of(plan, "default").expected == NO_CHANGE
        assert standards.verdict(plan, "default", a_recorded_timing(ratio=1.0)).kind is VerdictKind.SAME
        assert standards.verdict(plan, "default", a_recorded_timing(ratio=0.98)).kind is VerdictKind.REGRESSED
        faster = standards.verdict(plan, "default", a_recorded_timing(ratio=1.02))
        assert faster.kind is VerdictKind.IMPROVED
        assert standards.refuses(plan, "default") == "its baseline is not the pair's own"
        assert "promote" not in faster.sentence


def test_red_needs_more_evidence_among_many_gated_rows(accepted, tmp_path):
    accepted()
    few = a_plan(tmp_path)
    many = [few, *(a_plan(tmp_path, f"pair{number}") for number in range(99))]
    kept = read_expectations(path := tmp_path / "expectations_h200.json")
    pairs = {plan.selection.pair.name: kept.pairs["transpose"] for plan in many}
    path.write_text(document_text(kept.model_copy(update={"pairs": pairs})))
    units = recorded_units(1.985, count=8, seed=3)
    alone, among = (standards_for(*plans).of(few, "default") for plans in ([few], many))
    change = alone.change(units, 0.5, None)

    assert change.kind is VerdictKind.REGRESSED
    assert 1e-4 < change.p_worse < 1e-2
    assert alone.is_decided("optimized", change)
    assert not among.is_decided("optimized", change)


def test_the_noise_floor_of_its_class_is_the_band_where_it_is_wider_than_the_gate(accepted, tmp_path):
    accepted()
    plan = a_plan(tmp_path)
    standards = standards_for(plan)
    noisy = Floor.of([Trial(target="noise:copy", logs=(0.03,) * 6)])
    standards.noise = Noise({StepClass.LONG: noisy})
    verdict = standards.verdict(plan, "default", a_recorded_timing(ratio=1.95))

    assert verdict.kind is VerdictKind.SAME
    assert verdict.changes["speedup"].band_percent == pytest.approx(noisy.percent)
    standards.noise = Noise({StepClass.SHORT: noisy})
    assert standards.verdict(plan, "default", a_recorded_timing(ratio=1.95)).kind is VerdictKind.REGRESSED


def test_an_undecided_row_says_what_it_would_take(accepted, tmp_path):
    accepted()
    plan = a_plan(tmp_path)
    timing = a_recorded_timing(units=recorded_units(2.0, count=6, deviation=0.005, seed=11), seconds=6.0)
    verdict = standards_for(plan).verdict(plan, "default", timing)

    assert verdict.kind is VerdictKind.INCONCLUSIVE
    assert verdict.sentence.startswith("cannot decide at 0.5 %: speedup ")
    more, seconds = (int(word) for word in verdict.sentence.rpartition("; about ")[2].split() if word.isdigit())
    assert seconds == more * 6.0 / 6


def shares(units, ceiling_ns, key="dram", ceiling_mhz=None, held_mhz=1790):
    times = a_recorded_timing(units=units).time_ns
    found = {side: ceiling_ns / time.estimate for side, time in times.items()}
    return {
        side: Share(
            key=key,
            share=share,
            ceiling_ns=ceiling_ns,
            floor_ns=ceiling_ns / 2,
            at_held_clock=ceiling_mhz and share * ceiling_mhz / held_mhz,
        )
        for side, share in found.items()
    }


def test_both_sides_slower_at_the_same_speedup_is_red_by_their_shares(accepted, tmp_path):
    units, slower = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, 88_000.0, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0))
    plan = a_plan(tmp_path)
    standards = standards_for(plan)
    verdict = standards.verdict(plan, "default", a_recorded_timing(units=slower, shares=shares(slower, 20_000.0)))

    assert verdict.changes["speedup"].kind is VerdictKind.SAME
    assert verdict.kind is VerdictKind.REGRESSED
    assert verdict.sentence.startswith("share of dram of baseline -9.")
    assert verdict.sentence.count("beyond 3 %") == 2


def test_shares_accepted_on_another_gpu_are_held_to_the_wider_band_too(accepted, tmp_path):
    units, slower = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, 83_400.0, count=12, seed=4)
    timing = a_recorded_timing(units=slower, shares=shares(slower, 20_000.0))
    plan = a_plan(tmp_path)
    found = {}
    for device in (H200.uuid, "GPU-of-another-machine"):
        accepted(units=units, shares=shares(units, 20_000.0), provenance=a_provenance(device=device))
        found[device] = standards_for(plan).verdict(plan, "default", timing).kind
    assert list(found.values()) == [VerdictKind.REGRESSED, VerdictKind.SAME]


@pytest.mark.parametrize(
    ("baseline_ns", "ceiling_ns", "ceiling_mhz", "held_mhz", "elsewhere", "kind"),
    [
        (80_000.0, 18_870.0, 1608, 1790, True, VerdictKind.SAME),  # this GPU multiplies 6 % faster, as its power limit holds a higher clock
        (80_000.0, 18_870.0, 1608, 1790, False, VerdictKind.REGRESSED),  # the GPU it was accepted on: its ceiling is what it was
        (80_000.0, 18_870.0, None, 1790, True, VerdictKind.REGRESSED),  # no clock is known
        (88_000.0, 18_870.0, 1608, 1790, True, VerdictKind.REGRESSED),  # both sides are slower at the same clock
        (88_000.0, 20_000.0, 1517, 1627, True, VerdictKind.REGRESSED),  # both are slower at a lower clock, and the ceiling is what it was
        (88_000.0, 22_000.0, 1379, 1627, True, VerdictKind.SAME),  # this GPU holds a lower clock, which its ceiling shows too
        (80_000.0, 18_870.0, 1608, 1920, True, VerdictKind.REGRESSED),  # as long as there, for 7 % more cycles
    ],
)
def test_on_another_gpu_a_worse_share_of_products_needs_more_cycles_or_a_longer_time(
    accepted, tmp_path, baseline_ns, ceiling_ns, ceiling_mhz, held_mhz, elsewhere, kind
):
    units, now = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, baseline_ns, count=12, seed=4)
    device = "GPU-of-another" if elsewhere else H200.uuid
    accepted(units=units, shares=shares(units, 20_000.0, "bf16", 1517), provenance=a_provenance(device=device))
    plan = a_plan(tmp_path)
    timing = a_recorded_timing(units=now, shares=shares(now, ceiling_ns, "bf16", ceiling_mhz, held_mhz))
    verdict = standards_for(plan).verdict(plan, "default", timing)

    assert verdict.changes["speedup"].kind is VerdictKind.SAME
    assert verdict.kind is kind
    assert ("as this GPU's ceiling is higher" in verdict.sentence) is (elsewhere and kind is VerdictKind.SAME and ceiling_ns < 20_000.0)


def test_a_slower_optimized_side_on_another_gpu_is_red_whatever_clock_it_held(accepted, tmp_path):
    units, now = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0 / 1.07, 80_000.0, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0, "bf16", 1517), provenance=a_provenance(device="GPU-of-another"))
    plan = a_plan(tmp_path)
    timing = a_recorded_timing(units=now, shares=shares(now, 20_000.0, "bf16", 1517, held_mhz=1673))
    verdict = standards_for(plan).verdict(plan, "default", timing)

    assert verdict.kind is VerdictKind.REGRESSED
    assert verdict.changes["share of bf16 of baseline"].kind is VerdictKind.SAME


@pytest.mark.parametrize(
    ("baseline_ns", "ratio", "elsewhere", "knows_shares", "kind"),
    [
        (72_000.0, 1.8, True, True, VerdictKind.INCONCLUSIVE),  # the optimized side takes 40 us, as it did
        (72_000.0, 1.8, False, True, VerdictKind.REGRESSED),
        (72_000.0, 1.8, True, False, VerdictKind.REGRESSED),
        (72_000.0, 1.67, True, True, VerdictKind.REGRESSED),  # 43 us
        (80_000.0, 1.8, True, True, VerdictKind.REGRESSED),  # 44 us
        (88_000.0, 2.2, True, True, VerdictKind.INCONCLUSIVE),  # a slower baseline, of which only the share is red
        (88_000.0, 2.2, False, True, VerdictKind.REGRESSED),
        (88_000.0, 2.0, True, True, VerdictKind.REGRESSED),  # 44 us
        (78_000.0, 1.85, True, True, VerdictKind.REGRESSED),  # 42 us: each alone is inside the band, and not what the speedup lost
    ],
)
def test_on_another_gpu_another_baseline_alone_is_no_regression(accepted, tmp_path, baseline_ns, ratio, elsewhere, knows_shares, kind):
    units, now = recorded_units(2.0, 80_000.0, count=12), recorded_units(ratio, baseline_ns, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0), provenance=a_provenance(device="GPU-of-another" if elsewhere else H200.uuid))
    plan = a_plan(tmp_path)
    verdict = standards_for(plan).verdict(
        plan, "default", a_recorded_timing(units=now, shares=shares(now, 20_000.0) if knows_shares else {})
    )

    assert verdict.kind is kind
    assert ("which is no regression; accept the row here to gate it" in verdict.sentence) is (kind is VerdictKind.INCONCLUSIVE)
    assert VerdictKind.REGRESSED in {change.kind for change in verdict.changes.values()}


@pytest.mark.parametrize(
    ("baseline_ns", "clock", "percent"), [(80_000.0, "device", 5.0), (40_000.0, "device", 15.0), (8e6, "launch", 30.0), (8e6, "host", 15.0)]
)
def test_on_another_gpu_short_steps_and_those_of_the_host_have_a_wider_band(accepted, tmp_path, baseline_ns, clock, percent):
    accepted(units=recorded_units(2.0, baseline_ns, count=12), clock=clock, provenance=a_provenance(device="GPU-of-another"))
    plan = a_plan(tmp_path, clock=clock)
    assert standards_for(plan).of(plan, "default").least_band == percent


def test_the_share_of_a_step_that_waits_for_its_host_is_not_gated(accepted, tmp_path):
    units, slower = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, 160_000.0, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0), clock="launch", provenance=a_provenance(device=H200.uuid))
    plan = a_plan(tmp_path, clock="launch")
    standards = standards_for(plan)
    verdict = standards.verdict(plan, "default", a_recorded_timing(units=slower, shares=shares(slower, 20_000.0), clock="launch"))
    assert (verdict.kind, verdict.changes.keys()) == (VerdictKind.SAME, {"speedup"})


def test_what_was_accepted_roughly_is_gated_as_roughly(accepted, tmp_path):
    """Accepted to half of a wide --gate, a ratio is known no better: no run could decide about a smaller change."""
    expected = accepted(units=recorded_units(2.0, count=20, deviation=0.05, seed=3), provenance=a_provenance(device=H200.uuid))
    plan = a_plan(tmp_path)
    standards = standards_for(plan)
    verdict = standards.verdict(plan, "default", a_recorded_timing(ratio=expected.ratio.estimate))

    half_width = expected.ratio.half_width_percent
    assert 1.0 < half_width < 4.0
    assert standards.of(plan, "default").least_band == 2 * half_width
    assert verdict.kind is VerdictKind.SAME
    assert verdict.sentence.endswith(f"; accepted as known to {half_width:.2g} %, so no change under {2 * half_width:.2g} % counts")
    assert standards.verdict(plan, "default", a_recorded_timing(ratio=1.7)).kind is VerdictKind.REGRESSED


def test_a_machine_whose_ceiling_is_as_much_lower_is_not_red(accepted, tmp_path):
    units, slower = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, 88_000.0, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0))
    plan = a_plan(tmp_path)
    on_slower_memory = a_recorded_timing(units=slower, shares=shares(slower, 22_000.0))

    assert standards_for(plan).verdict(plan, "default", on_slower_memory).kind is VerdictKind.SAME


@pytest.mark.parametrize("known", [{}, {"key": "bf16"}])
def test_without_the_same_ceiling_on_both_machines_no_share_is_gated(accepted, tmp_path, known):
    units, slower = recorded_units(2.0, 80_000.0, count=12), recorded_units(2.0, 88_000.0, count=12, seed=4)
    accepted(units=units, shares=shares(units, 20_000.0))
    plan = a_plan(tmp_path)
    timing = a_recorded_timing(units=slower, shares=shares(slower, 20_000.0, **known) if known else {})

    assert standards_for(plan).verdict(plan, "default", timing).changes.keys() == {"speedup"}


def test_a_goal_other_than_time_is_gated_in_its_place(accepted, tmp_path):
    accepted(1.5, goal="memory")
    plan = a_plan(tmp_path, goal="memory")
    standards = standards_for(plan)

    def verdict(gain):
        units = tuple(unit.model_copy(update={"gains": {"optimized": gain}}) for unit in recorded_units(2.0))
        return standards.verdict(plan, "default", a_recorded_timing(units=units, goal="memory"))

    assert (verdict(1.5).kind, verdict(1.4).kind, verdict(1.6).kind) == (VerdictKind.SAME, VerdictKind.REGRESSED, VerdictKind.IMPROVED)
    assert verdict(1.4).sentence.startswith("memory -6.667 % [")
    without = standards.verdict(plan, "default", a_recorded_timing(goal="memory"))
    assert (without.kind, without.sentence) == (VerdictKind.NEW, "not gated: it has no figure for memory on both sides")


@pytest.mark.parametrize("budget", [64, 4096])
def test_a_figure_of_which_neither_way_is_better_is_not_gated(accepted, tmp_path, budget):
    told = {"optimized": {"budget": ReportedMetric(value=512, unit="tokens", better="neither")}}
    accepted(2.0, metrics=told)
    plan = a_plan(tmp_path, goal="budget")
    figures = {"baseline": 512.0, "optimized": float(budget)}
    units = tuple(unit.model_copy(update={"figures": figures, "gains": gains_from(figures, "neither")}) for unit in recorded_units(2.0))
    found = standards_for(plan).verdict(plan, "default", a_recorded_timing(units=units, goal="budget"))
    assert (found.kind, found.changes) == (VerdictKind.NEW, {})


def test_every_figure_that_may_be_gated_counts_as_a_test_and_a_librarys_share_is_none(accepted, tmp_path):
    times = {"baseline": 80_000.0, "tiled": 60_000.0, "optimized": 40_000.0, "library": 30_000.0}
    units, slower = (recorded_ladder(times | changes, count=12, seed=1) for changes in ({}, {"library": 40_000.0}))
    accepted(units=units, shares=shares(units, 20_000.0))
    plan = a_plan(tmp_path, sides=tuple(times))
    standards = standards_for(plan)
    verdict = standards.verdict(plan, "default", a_recorded_timing(units=slower, shares=shares(slower, 20_000.0)))

    assert verdict.kind is VerdictKind.SAME
    assert len(verdict.changes) == standards.of(plan, "default").gated == 1 + 1 + 3
    assert not any("library" in name for name in verdict.changes)


@pytest.mark.parametrize(
    ("clock", "goal", "is_held", "stop", "band"),
    [
        ("device", "time", True, StopReason.PRECISE, 0.5),
        ("device", "time", True, StopReason.FIXED, 0.5),
        ("device", "time", True, StopReason.UNIT_CAP, 5.0),
        ("device", "time", True, StopReason.TIME_BUDGET, 5.0),
        ("device", "time", False, StopReason.PRECISE, 0.5),
        ("device", "time", False, StopReason.UNIT_CAP, 30.0),
        ("device", "memory", False, StopReason.UNIT_CAP, 5.0),
        ("launch", "time", False, StopReason.PRECISE, 0.5),
        ("launch", "time", False, StopReason.UNIT_CAP, 30.0),
    ],
)
def test_a_row_that_scatters_with_every_unit_is_accepted_from_a_wider_interval(tmp_path, clock, goal, is_held, stop, band):
    plan = a_plan(tmp_path, clock=clock, goal=goal)
    timing = a_recorded_timing(units=recorded_units(2.0), stop_reason=stop, launch_latency_hidden=is_held)
    assert standards_for(plan, gate=0.5).band_to_accept(plan, timing) == band
