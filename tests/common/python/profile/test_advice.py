"""What bounds a side and what is advised, on a machine with round numbers: thresholds are the machine's, sentences name their ground."""

import pytest

from common.python.machine.roofline import with_shares
from common.python.profile import ncu
from common.python.profile.advice import Bottleneck, diagnoses
from common.python.report.html import html
from common.python.report.tables import markdown, sections
from common.python.results import SideProfile, StepTrace
from tests.support.factories import a_row, a_run, a_side, a_timing
from tests.support.html_page import Page
from tests.support.synthetic_ceilings import CEILINGS, a_ceiling, synthetic_ceilings

GB = 1e9
FILES = {"baseline": "b.py", "optimized": "o.py"}
READ_4_GB = {"dram_read": 4 * GB}  # 1 ms at this machine's 4 TB/s
SECTORS, REQUESTS = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("sectors", "requests"))
CONFLICTS, WAVEFRONTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
WAVES, MOST_WARPS = "launch__waves_per_multiprocessor", "sm__maximum_warps_per_active_cycle_pct"
CACHES = {ncu.L1_PERCENT: 20.0, ncu.L2_PERCENT: 10.0}
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
LONG = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"


def trace(busy, **changes):
    fields = {"source": "nsys", "launches": 40, "kernels": 40, "copies": 0, "host_ns": 1.0, "span_ns": 100.0, "busy_ns": busy}
    return StepTrace(**fields | changes)


def diagnosis(work, took_ns, counters=None, step=None, kept=None, **timing):
    """Of the only side of a row, which took `took_ns` for `work`."""
    measured = a_timing({"baseline": took_ns}, **timing)
    if work:
        measured = with_shares(measured, work, kept or synthetic_ceilings(), FILES)
    profile = SideProfile(step=step, counters=counters or {})
    (found,) = diagnoses(a_row(sides={"baseline": a_side("baseline", profile=profile)}, timings={"default": measured}))
    return found


def sentences_with(name, found):
    return [sentence for sentence in found.advice if name in sentence]


@pytest.mark.parametrize(
    ("work", "took_ns", "expected"),
    [
        (READ_4_GB, 1.25e6, Bottleneck.MEMORY),
        ({"dram_read": 40e6}, 1e4, Bottleneck.MEMORY),
        ({"bf16": 8e11, "dram_read": 1e6}, 1.25e6, Bottleneck.COMPUTE),
        ({"h2d": 0.05 * GB}, 1.25e6, Bottleneck.TRANSFER),
        ({"peer": 0.4 * GB}, 1.25e6, Bottleneck.TRANSFER),
        (READ_4_GB, 4e6, Bottleneck.LATENCY),
    ],
)
def test_a_side_is_bound_by_what_takes_most_of_its_time(work, took_ns, expected):
    assert diagnosis(work, took_ns, CACHES).bottleneck is expected


def test_that_a_side_waits_is_known_once_its_caches_were_counted():
    found = diagnosis(READ_4_GB, 4e6)
    assert found.bottleneck is Bottleneck.UNKNOWN
    assert found.rests_on == (
        "nothing that was measured takes 70 % of the time, and its caches were not counted; "
        "the most: the work in dram at this machine's measured ceiling takes 25 % of the time"
    )
    assert found.advice == ("no counter was read that says what it waits for: run it with --profile deep_dive",)
    assert diagnosis(READ_4_GB, 4e6, {ncu.L1_PERCENT: 10.0}).bottleneck is Bottleneck.UNKNOWN
    assert diagnosis(READ_4_GB, 4e6, device="cpu", clock="host").bottleneck is Bottleneck.LATENCY


@pytest.mark.parametrize("cache", CACHES)
def test_a_cache_that_is_at_work_most_of_the_time_is_what_binds(cache):
    found = diagnosis(READ_4_GB, 4e6, CACHES | {cache: 91.0})
    assert found.bottleneck is Bottleneck.MEMORY
    assert found.rests_on == f"{cache} is 91.0 %, of this device's peak"


def test_what_takes_seven_tenths_of_the_time_binds_and_less_does_not():
    assert diagnosis(READ_4_GB, 1.42e6).bottleneck is Bottleneck.MEMORY
    found = diagnosis(READ_4_GB, 1.44e6, CACHES)
    assert found.bottleneck is Bottleneck.LATENCY
    assert found.rests_on == (
        "nothing takes 70 % of the time; the most: the work in dram at this machine's measured ceiling takes 69 % of the time"
    )


def test_only_near_the_ceiling_is_less_work_all_that_helps():
    (near,) = sentences_with("measured ceiling", diagnosis(READ_4_GB, 1.1e6))
    assert near.endswith(
        "at most be 1.10x as fast; move fewer bytes: fuse with what runs before or after, use a narrower type, reuse what is on chip"
    )
    (below,) = sentences_with("measured ceiling", diagnosis(READ_4_GB, 1.25e6))
    assert below.endswith("at most be 1.25x as fast; the rest of the time it waits: --profile deep_dive counts for what")
    (stalled,) = sentences_with("measured ceiling", diagnosis(READ_4_GB, 1.25e6, {LONG: 8.0}))
    assert f"1.25x as fast; {LONG} is 8.00, the most of all reasons to stall: have more loads" in stalled
    assert "move fewer" not in stalled


def test_of_scattered_loads_and_stores_the_worse_are_named_and_of_two_alike_the_stores():
    stores = {name.replace("op_ld", "op_st"): value for name, value in {SECTORS: 640e6, REQUESTS: 20e6}.items()}
    (sentence,) = sentences_with("neighbouring", diagnosis(READ_4_GB, 8e6, {SECTORS: 640e6, REQUESTS: 20e6, **stores}))
    assert sentence.endswith("in these stores")
    (sentence,) = sentences_with(
        "neighbouring", diagnosis(READ_4_GB, 8e6, {SECTORS: 640e6, REQUESTS: 20e6, **stores | {next(iter(stores)): 400e6}})
    )
    assert sentence.endswith("in these loads")


def test_launches_are_a_ceiling_where_they_count():
    found = diagnosis({"launch": 100}, 250e3, clock="launch")
    assert found.bottleneck is Bottleneck.LAUNCH
    (sentence,) = found.advice
    assert sentence == (
        "launch: 80 % of this machine's measured ceiling, so the same work can at most be 1.25x as fast; "
        "launch less often: fuse kernels, or replay a CUDA graph"
    )


def test_where_blocks_are_too_few_no_limit_of_an_sm_and_no_uneven_block_is_blamed():
    launch = {MOST_WARPS: 50.0, "launch__occupancy_limit_registers": 4.0, ncu.OCCUPANCY: 2.0}
    few, enough = (diagnosis(READ_4_GB, 8e6, CACHES | launch | {WAVES: waves}) for waves in (0.08, 3.0))
    assert [len(sentences_with(name, few)) for name in (WAVES, MOST_WARPS, ncu.OCCUPANCY)] == [1, 0, 0]
    assert [len(sentences_with(name, enough)) for name in (WAVES, MOST_WARPS, ncu.OCCUPANCY)] == [0, 1, 1]


# --- the ridge point is this machine's


@pytest.mark.parametrize(("bandwidth", "ridge", "place", "roof"), [(4e12, "12.5", "under", "dram"), (10e12, "5.00", "over", "fp32")])
def test_the_same_work_has_another_roof_on_another_machine(bandwidth, ridge, place, roof):
    other = tuple(
        a_ceiling(each.name, bandwidth, "bytes/s") if each.name.startswith("dram") else each for each in CEILINGS if each.name != "fp32_fma"
    )
    found = diagnosis({"dram_read": 1 * GB, "fp32": 8 * GB}, 1e6, kept=synthetic_ceilings(ceilings=other))
    assert found.intensity.words == (
        f"8.00 FLOP/B, {place} the ridge point of {ridge} FLOP/B that this machine's measured ceilings of fp32 and dram make: "
        f"{roof} is the roof"
    )


def test_work_without_arithmetic_or_without_bytes_has_no_intensity():
    assert diagnosis(READ_4_GB, 2e6).intensity is None
    assert diagnosis({"bf16": 8e11}, 2e6).intensity is None


# --- counters


def test_bytes_that_were_counted_bound_a_side_that_its_declared_work_does_not():
    counters = {ncu.TIME: 4.2e6, ncu.DRAM_BYTES: 16 * GB}
    found = diagnosis(READ_4_GB, 4.2e6, counters)
    assert found.bottleneck is Bottleneck.MEMORY
    assert found.rests_on == "dram__bytes.sum of 14.9 GiB in 4.20 ms is 95 % of this machine's measured ceiling"
    (sentence,) = sentences_with("dram__bytes.sum", found)
    assert sentence.startswith("dram__bytes.sum is 14.9 GiB, 4.00x the 3.73 GiB that the workload declares, beyond the 1.1x")


def test_bytes_as_declared_are_no_finding():
    counters = {ncu.TIME: 1.25e6, ncu.DRAM_BYTES: 4.3 * GB}
    assert sentences_with("dram__bytes.sum", diagnosis(READ_4_GB, 1.25e6, counters)) == []


def test_without_ceilings_the_device_s_own_peak_counts():
    found = diagnosis({}, 1e6, {ncu.DRAM_PERCENT: 20.0, ncu.SM_PERCENT: 85.0})
    assert found.bottleneck is Bottleneck.COMPUTE
    assert found.rests_on == f"{ncu.SM_PERCENT} is 85.0 %, of this device's peak"
    assert diagnosis({}, 1e6, {ncu.DRAM_PERCENT: 70.0}).bottleneck is Bottleneck.MEMORY


@pytest.mark.parametrize(
    ("name", "firing", "silent"),
    [
        (SECTORS, {SECTORS: 340e6, REQUESTS: 20e6}, {SECTORS: 320e6, REQUESTS: 20e6}),
        (SECTORS, {SECTORS: 251e6, REQUESTS: 10e6}, {SECTORS: 249e6, REQUESTS: 10e6}),  # twice the 4 GB that are asked for
        (CONFLICTS, {CONFLICTS: 50.0, WAVEFRONTS: 100.0}, {CONFLICTS: 49.0, WAVEFRONTS: 100.0}),
        (WAVES, {WAVES: 0.9}, {WAVES: 1.0}),
        (MOST_WARPS, {MOST_WARPS: 50.0, "launch__occupancy_limit_registers": 4.0}, {MOST_WARPS: 100.0}),
        (ncu.OCCUPANCY, {ncu.OCCUPANCY: 24.0, MOST_WARPS: 50.0}, {ncu.OCCUPANCY: 26.0, MOST_WARPS: 50.0}),
        (LONG, {LONG: 8.0}, {ncu.SM_PERCENT: 8.0}),
        (ncu.L1_PERCENT, {ncu.L1_PERCENT: 91.0}, {ncu.L1_PERCENT: 69.0}),
    ],
)
def test_a_rule_speaks_only_beyond_its_threshold_and_names_its_counter(name, firing, silent):
    (sentence,) = sentences_with(name, diagnosis(READ_4_GB, 8e6, firing))
    assert any(character.isdigit() for character in sentence)
    assert sentences_with(name, diagnosis(READ_4_GB, 8e6, silent)) == []


def test_the_lowest_limit_of_occupancy_is_named():
    counters = {MOST_WARPS: 50.0, "launch__occupancy_limit_registers": 4.0, "launch__occupancy_limit_warps": 8.0}
    (sentence,) = sentences_with(MOST_WARPS, diagnosis(READ_4_GB, 8e6, counters))
    assert "launch__occupancy_limit_registers is the lowest, 4.00 blocks an SM" in sentence


def test_a_busy_sm_is_told_to_use_tensor_cores_only_where_the_work_is_theirs():
    busy = {ncu.SM_PERCENT: 90.0, ncu.TENSOR: 10.0}
    assert len(sentences_with(ncu.TENSOR, diagnosis({"bf16": 8e11}, 4e6, busy))) == 1
    assert sentences_with(ncu.TENSOR, diagnosis({"fp32": 5e10}, 4e6, busy)) == []
    assert sentences_with(ncu.TENSOR, diagnosis({"bf16": 8e11}, 4e6, busy | {ncu.TENSOR: 80.0})) == []


def test_idle_lanes_matter_where_instructions_take_the_time():
    busy, one_lane_asks_the_tma = {ncu.SM_PERCENT: 90.0}, {LANES: 3.7}
    (sentence,) = sentences_with(LANES, diagnosis({"fp32": 5e10}, 4e6, busy | {LANES: 17.2}))
    assert "is 17.2 of 32" in sentence
    assert sentences_with(LANES, diagnosis({"fp32": 5e10}, 4e6, busy | {LANES: 24.0})) == []
    assert sentences_with(LANES, diagnosis(READ_4_GB, 1.1e6, one_lane_asks_the_tma)) == []


def test_without_a_counter_a_waiting_side_is_told_how_to_get_one():
    assert diagnosis(READ_4_GB, 8e6).advice == ("no counter was read that says what it waits for: run it with --profile deep_dive",)


# --- a step in time


def test_gaps_bind_a_side_whose_launches_count():
    found = diagnosis(READ_4_GB, 8e6, step=trace(30.0), clock="launch")
    assert found.bottleneck is Bottleneck.LAUNCH
    assert found.rests_on == "gaps are 70 % of a step's time on the GPU, by nsys"
    (sentence,) = found.advice
    assert sentence == (
        "a step's 40 launches leave gaps of 70 % on the GPU by nsys, which itself slows the host: replay a CUDA graph, or make fewer and "
        "larger kernels"
    )


def test_gaps_under_a_tracer_say_nothing_of_work_that_is_queued_ahead():
    assert diagnosis(READ_4_GB, 8e6, CACHES, step=trace(30.0)).bottleneck is Bottleneck.LATENCY
    assert diagnosis(READ_4_GB, 8e6, step=trace(30.0), launch_latency_hidden=False).bottleneck is Bottleneck.LAUNCH


def test_copies_that_wait_for_kernels_are_a_finding_where_transfers_bind():
    work = {"h2d": 0.05 * GB}
    (sentence,) = sentences_with("side by side", diagnosis(work, 1.25e6, step=trace(90.0, overlap_share=0.1)))
    assert "ran side by side for 10 % of the shorter of them, by nsys" in sentence
    assert sentences_with("side by side", diagnosis(work, 1.25e6, step=trace(90.0, overlap_share=0.9))) == []


# --- which rows


def test_what_nothing_is_known_of_has_no_diagnosis():
    assert list(diagnoses(a_row())) == []
    profile = SideProfile(counters={ncu.SM_PERCENT: 90.0})
    assert (
        list(
            diagnoses(
                a_row(sides={side: a_side(side, profile=profile) for side in FILES}, timings={"default": a_timing(mode="cold_start")})
            )
        )
        == []
    )


def test_counters_are_of_the_first_shape_alone():
    timings = {shape: a_timing({"baseline": 1e6}) for shape in ("small", "large")}
    profile = SideProfile(counters={ncu.SM_PERCENT: 90.0})
    found = diagnoses(a_row(sides={"baseline": a_side("baseline", profile=profile)}, timings=timings))
    assert [each.shape for each in found] == ["small"]


def test_both_reports_say_what_bounds_a_side_and_what_may_help():
    timing = with_shares(a_timing({"baseline": 4e6, "optimized": 1.25e6}), READ_4_GB, synthetic_ceilings(), FILES)
    row = a_row(timings={"default": timing})
    (table,) = [section for section in sections([row]) if section.title == "What bounds each side"]
    assert [entry[:3] for entry in table.rows] == [
        ("ch07:transpose", "baseline", "not known"),
        ("ch07:transpose", "optimized", "memory-bound"),
    ]
    assert table.rows[1][5].startswith("(1) dram: 80 % of this machine's measured ceiling")
    assert "<summary>What bounds each side</summary>" in markdown(a_run(), [row])
    (found,) = [text for text in Page(html(a_run(), [row])).texts("dd") if "memory-bound" in text]
    assert "optimized memory-bound: the work in dram at this machine's measured ceiling takes 80 % of the time" in found
