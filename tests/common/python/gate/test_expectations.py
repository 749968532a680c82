"""What is expected lies in one file a GPU model, beside the pairs, and only what was measured gets there."""

import pytest

from common.python.errors import BenchmarkError
from common.python.gate.expectations import (
    expectation_of,
    expectations_path,
    gpu_key,
    keep_expectations,
    key_text,
    provenance_of,
    read_expectations,
    refusal,
    too_wide_rungs,
)
from common.python.gate.statistics import means_between
from common.python.machine.description import Gpu
from common.python.pairs.goals import TIME
from common.python.results import SideProfile, Spread, StopReason, TelemetrySummary
from tests.support.factories import (
    a_provenance,
    a_recorded_timing,
    a_row,
    a_run,
    a_side,
    an_expectation,
    recorded_ladder,
    recorded_units,
)
from tests.support.plans import H200, WITH_GPU


@pytest.mark.parametrize(
    ("name", "count", "key", "text"),
    [
        ("NVIDIA H200", 1, "h200", "H200"),
        ("NVIDIA H200", 2, "2xh200", "2xH200"),
        ("NVIDIA B200", 8, "8xb200", "8xB200"),
        ("NVIDIA GB10", 1, "gb10", "GB10"),
        ("NVIDIA H100 80GB HBM3", 1, "h100", "H100"),
        ("NVIDIA H100 PCIe", 1, "h100_pcie", "H100 PCIE"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q", 1, "rtx_pro_6000_blackwell_max_q", "RTX PRO 6000 BLACKWELL MAX Q"),
    ],
)
def test_a_gpu_model_and_how_many_of_it_have_a_key(name, count, key, text):
    gpu = Gpu(index=0, name=name, uuid="GPU-1", capability=(9, 0), memory_bytes=1, driver="1")

    assert gpu_key([gpu] * count) == key
    assert key_text(key) == text


def test_without_a_gpu_there_is_no_key():
    assert gpu_key([]) == ""


def test_what_is_kept_is_read_back_and_the_rest_of_the_file_stays(tmp_path):
    path = expectations_path(tmp_path, "h200")
    first, second, third = an_expectation(2.0), an_expectation(3.0), an_expectation(4.0)
    keep_expectations(path, "transpose", {"small": first, "large": first})
    keep_expectations(path, "copy", {"default": second})
    keep_expectations(path, "transpose", {"large": third})

    assert path.name == "expectations_h200.json"
    assert read_expectations(path).pairs == {"copy": {"default": second}, "transpose": {"small": first, "large": third}}
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_gpu_that_nobody_measured_has_no_expectations(tmp_path):
    assert read_expectations(expectations_path(tmp_path, "b200")).pairs == {}


def test_an_expectation_without_the_units_for_a_variance_is_an_error(tmp_path):
    path = expectations_path(tmp_path, "h200")
    keep_expectations(path, "transpose", {"default": an_expectation().model_copy(update={"logs": (0.7,)})})

    with pytest.raises(BenchmarkError, match=r"expectations_h200.json: pairs.transpose.default.logs: Tuple should have at least 2 items"):
        read_expectations(path)


LADDER_NS = {"baseline": 80_000.0, "tiled": 60_000.0, "optimized": 40_000.0}


def test_a_rung_is_kept_with_what_it_is_held_to_over_both_ends():
    units = recorded_ladder(LADDER_NS, count=12)
    kept = an_expectation(units=units)

    (means,) = kept.means_of(["tiled", "unheard_of"]).values()
    expected = means_between(units, TIME, ["tiled"])["tiled"]
    assert {sides: mean.value for sides, mean in means.items()} == pytest.approx({sides: mean.value for sides, mean in expected.items()})
    assert {sides: mean.degrees for sides, mean in means.items()} == dict.fromkeys(expected, 11)
    assert kept.rungs["tiled"].over == "baseline"
    assert kept.rungs["tiled"].over_baseline == a_recorded_timing(units=units).speedups["tiled"]


def test_a_rung_with_other_units_than_its_pair_is_an_error(tmp_path):
    path, expected = expectations_path(tmp_path, "h200"), an_expectation(units=recorded_ladder(LADDER_NS, count=12))
    rung = expected.rungs["tiled"].model_copy(update={"logs_over_baseline": (0.1, 0.2)})
    keep_expectations(path, "transpose", {"default": expected.model_copy(update={"rungs": {"tiled": rung}})})

    with pytest.raises(BenchmarkError, match=r"transpose.default: .*rung tiled has 2 logs and the pair 12; all come from the same units"):
        read_expectations(path)


def test_a_rung_is_too_uncertain_if_either_of_its_gated_ratios_is():
    def wide(side):
        calm = recorded_ladder(LADDER_NS, count=24, deviation=0.001)
        wild = recorded_ladder({side: LADDER_NS[side]}, count=24, deviation=0.02)
        units = tuple(unit.model_copy(update={"blocks": unit.blocks | other.blocks}) for unit, other in zip(calm, wild, strict=True))
        return too_wide_rungs(a_recorded_timing(units=units), 0.5)

    assert {side: list(wide(side)) for side in LADDER_NS} == {side: ["tiled"] for side in LADDER_NS}
    assert too_wide_rungs(a_recorded_timing(units=recorded_ladder(LADDER_NS, count=24, deviation=0.001)), 0.5) == {}


def test_what_is_accepted_comes_with_its_raw_units_and_where_it_was_measured():
    units = recorded_units(2.0, count=12)
    clock = Spread(minimum=1.0, median=1980.0, mean=1.0, maximum=2000.0)
    timing = a_recorded_timing(units=units, telemetry=TelemetrySummary(samples=9, sm_clock_mhz=clock))
    row = a_row(timings={"default": timing})
    run = a_run(ceilings={"cuda": {"measured": "2026-01-01"}})
    kept = expectation_of(row, timing, timing.speedups["optimized"], provenance_of(run, WITH_GPU, timing))

    assert len(kept.logs) == len(kept.sides["baseline"].logs_ns) == 12
    assert kept.sides["optimized"].time_ns == timing.time_ns["optimized"]
    assert kept.sides["optimized"].peak_memory_bytes == row.sides["optimized"].peak_memory_bytes
    assert (kept.provenance.gpu, kept.provenance.driver, kept.provenance.sm_clock_mhz) == (H200.name, H200.driver, 1980.0)
    assert kept.provenance.device == H200.uuid
    assert (kept.provenance.run_id, kept.provenance.ceilings) == (run.run_id, "2026-01-01")


def test_the_counters_of_a_step_are_kept_with_the_shape_that_they_are_of():
    profile = SideProfile(counters={"dram__bytes.sum": 7.0})
    sides = {"baseline": a_side("baseline"), "optimized": a_side(profile=profile)}
    row = a_row(timings={shape: a_recorded_timing() for shape in ("small", "large")}, sides=sides)
    small, large = (expectation_of(row, each, each.speedups["optimized"], a_provenance()) for each in row.timings.values())

    assert (small.sides["optimized"].counters, small.sides["baseline"].counters) == (profile.counters, {})
    assert large.sides["optimized"].counters == {}


def test_a_run_without_ceilings_says_that_there_were_none():
    assert provenance_of(a_run(), WITH_GPU, a_recorded_timing()).ceilings == a_provenance().ceilings == ""


@pytest.mark.parametrize(
    ("units", "changes", "why_not"),
    [
        (recorded_units(2.0, count=12, deviation=0.001), {}, ""),
        (recorded_units(2.0, count=9, deviation=0.001), {}, "found 9 units; expected at least 10"),
        (recorded_units(2.0, count=5, deviation=0.001), {"stop_reason": StopReason.TIME_BUDGET}, "found 5 units; expected at least 6"),
        (recorded_units(2.0, count=12, deviation=0.03), {}, "half of the band"),
        (recorded_units(2.0, count=12), {"stop_reason": StopReason.THROTTLED}, "the device throttled; expected a fit environment"),
        (recorded_units(2.0, count=12), {"goal": "memory"}, "found no figure for the goal memory; expected one on both sides"),
    ],
)
def test_what_is_uncertain_is_refused_in_a_sentence(units, changes, why_not):
    found = refusal(a_recorded_timing(units=units, **changes), 0.5)

    assert found.endswith(why_not)
    assert bool(found) == bool(why_not)
