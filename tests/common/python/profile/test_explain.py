"""What a side had less of is said of the unit that bound it, by counters that fell; what rose or idled explains nothing."""

import pytest

from common.python.profile.explain import reasons
from common.python.profile.ncu import DRAM_PERCENT, L1_PERCENT, L2_PERCENT, SM_PERCENT, TIME
from common.python.profile.steps import GpuWork, SeenStep, figures
from common.python.report.html import html
from common.python.report.tables import markdown
from common.python.results import SideProfile, StepTrace
from tests.support.factories import a_recorded_timing, a_row, a_run, a_side, a_timing, an_interval, recorded_ladder
from tests.support.html_page import Page

SECTORS, REQUESTS = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_st.sum" for what in ("sectors", "requests"))
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# A transpose that writes by columns, and one that turns its tiles in shared memory, as an H200 counted them.
BY_COLUMNS = {
    TIME: 4.16e6,
    DRAM_PERCENT: 16.2,
    L2_PERCENT: 81.5,
    L1_PERCENT: 50.2,
    SM_PERCENT: 6.1,
    SECTORS: 268e6,
    REQUESTS: 8.4e6,
    CONFLICTS: 0.0,
    "smsp__inst_executed.sum": 136e6,
}
BY_TILES = BY_COLUMNS | {
    TIME: 574e3,
    DRAM_PERCENT: 77.0,
    L2_PERCENT: 82.7,
    L1_PERCENT: 28.3,
    SM_PERCENT: 48.2,
    SECTORS: 33.6e6,
    CONFLICTS: 426e3,
    "smsp__inst_executed.sum": 284e6,
}


def row_of(baseline, optimized, steps=(None, None), **timing):
    """A row that was timed at what ncu counted, unless `timing` says otherwise."""
    counted = {"baseline": baseline, "optimized": optimized}
    profiles = {side: SideProfile(counters=counted[side], step=step) for side, step in zip(counted, steps, strict=True)}
    times = {side: counters.get(TIME, 1e6) for side, counters in counted.items()}
    timings = {"default": a_timing(**{"sides_ns": times} | timing)}
    return a_row(sides={side: a_side(side, profile=profile) for side, profile in profiles.items()}, timings=timings)


def why(baseline, optimized):
    """The one sentence, or nothing."""
    return " ".join(reason.words for reason in reasons(row_of(baseline, optimized)))


def test_the_unit_that_had_less_to_do_comes_first_with_what_it_had_less_of():
    words = why(BY_COLUMNS, BY_TILES)
    assert words.startswith(f"the L2 was busy for 3.39 ms of 4.16 ms ({L2_PERCENT}), now for 475 µs of 574 µs: {SECTORS} 268,000,000 → ")
    assert "31.9 → 4.00 a request" in words
    assert "; the L1 was busy for 2.09 ms of 4.16 ms" in words


def test_what_rose_in_a_faster_side_and_what_hardly_worked_explain_nothing():
    words = why(BY_COLUMNS, BY_TILES)
    assert "conflicts" not in words
    assert "the SM" not in words  # busy for 6 % of the time, so it bound nothing
    assert "the DRAM" not in words


def test_the_other_way_round_the_same_unit_had_more_to_do():
    (reason,) = reasons(row_of(BY_TILES, BY_COLUMNS))
    assert reason.title == "Why optimized is slower"
    assert reason.words.startswith("the L2 was busy for 475 µs of 574 µs")
    assert f"{SECTORS} 33,600,000 → 268,000,000" in reason.words


def test_a_unit_whose_time_fell_by_less_than_a_third_of_what_was_saved_is_not_the_reason():
    # The L2 has as much to do as before and is done sooner, because it is asked sooner.
    before = {
        TIME: 400e3,
        L2_PERCENT: 60.0,
        "smsp__inst_issued.sum": 1e6,
        STALLED.format("long_scoreboard"): 30.0,
        STALLED.format("wait"): 1.0,
    }
    after = before | {TIME: 260e3, L2_PERCENT: 90.0, STALLED.format("long_scoreboard"): 12.0, STALLED.format("wait"): 1.5}
    words = why(before, after)
    assert words.startswith(
        "no unit was busy for so much less time, so its warps waited less: long_scoreboard 30,000,000 → 12,000,000 warp cycles"
    )
    assert "wait 1" not in words


def test_threads_that_wait_side_by_side_are_told_where_stalls_were_not_counted():
    launch = {"launch__grid_size": 1.0, "launch__block_size": 1.0}
    assert why({TIME: 6e7, **launch}, {TIME: 6e3, **launch, "launch__grid_size": 1056.0, "launch__block_size": 256.0}).endswith(
        "waited less: threads 1 → 270,336 (launch__grid_size x launch__block_size)"
    )
    assert why({TIME: 6e7}, {TIME: 6e3}).endswith("what for, the counters of deep_dive say")


@pytest.mark.parametrize("optimized", [BY_COLUMNS | {TIME: 4.10e6}, {}])
def test_steps_of_one_time_and_a_side_that_was_not_counted_have_no_reason(optimized):
    assert why(BY_COLUMNS, optimized) == ""


# --- what was timed says which side is faster


def a_step(**changes):
    fields = {"source": "nsys", "launches": 40, "kernels": 40, "copies": 0, "host_ns": 900e3, "span_ns": 1000e3, "busy_ns": 400e3}
    return StepTrace(**fields | changes)


ONE_LAUNCH = a_step(launches=1, host_ns=20e3, span_ns=420e3)
TIMED = {"sides_ns": {"baseline": 1000e3, "optimized": 430e3}}


def test_what_the_kernels_do_not_explain_happens_around_them():
    (reason,) = reasons(row_of({TIME: 400e3}, {TIME: 395e3}, (a_step(), ONE_LAUNCH), clock="launch", **TIMED))
    assert reason.title == "Why optimized is faster"
    assert reason.words == (
        f"the kernels took 400 µs, now 395 µs ({TIME}), the rest is around them: "
        "launches 40 → 1, host 900 µs → 20.0 µs, gaps on the GPU 600 µs → 20.0 µs (by nsys); "
        "of 570 µs saved, 0 ns (0 %) is time of kernels (bytes and other work), 570 µs (100 %) gaps between them (launches), by nsys"
    )


def test_a_step_that_was_only_traced_has_a_reason_too_and_time_that_is_hidden_is_none():
    row = row_of({}, {}, (a_step(), ONE_LAUNCH), clock="launch", **TIMED)
    assert [reason.headline for reason in reasons(row)] == [
        "optimized is faster: launches 40 → 1, host 900 µs → 20.0 µs, gaps on the GPU 600 µs → 20.0 µs (by nsys)"
    ]
    (reason,) = reasons(row_of({}, {}, (a_step(), ONE_LAUNCH), **TIMED))
    assert reason.headline == "optimized is faster: launches 40 → 1 (by nsys)"  # its clock does not see the host, nor a gap that it leaves
    assert not list(reasons(row_of({}, {}, (a_step(), a_step(kernels=0, launches=0, copies=1)), **TIMED)))


def test_what_a_trace_saw_change_by_less_than_a_third_of_the_time_is_no_reason():
    a_little = a_step(host_ns=800e3, busy_ns=500e3)
    assert not list(reasons(row_of({}, {}, (a_step(), a_little), clock="launch", **TIMED)))
    assert not list(reasons(row_of({}, {}, (a_step(), ONE_LAUNCH), clock="host", device="cpu", **TIMED)))


def traced(count, kernel_ns, gap_ns):
    """A step of so many kernels, one behind the other."""
    starts = [number * (kernel_ns + gap_ns) for number in range(count)]
    work = tuple(GpuWork("gemm", "kernel", start, start + kernel_ns, call) for call, start in enumerate(starts))
    return figures(SeenStep(work, host_ns=5e3 * count), "nsys")


EAGER = traced(count=10, kernel_ns=20e3, gap_ns=30e3)  # 200 µs of kernels
SPLITS = {
    "only gaps shrink: fewer launches of the same work": (
        traced(count=2, kernel_ns=100e3, gap_ns=5e3),
        205e3,
        "of 265 µs saved, 0 ns (0 %) is time of kernels (bytes and other work), 265 µs (100 %) gaps between them (launches), by nsys",
    ),
    "only kernels shrink: fused, with as much time between them": (
        traced(count=4, kernel_ns=10e3, gap_ns=90e3),
        310e3,
        "of 160 µs saved, 160 µs (100 %) is time of kernels (bytes and other work), 0 ns (0 %) gaps between them (launches), by nsys",
    ),
    "both": (
        traced(count=2, kernel_ns=50e3, gap_ns=50e3),
        150e3,
        "of 320 µs saved, 100 µs (31 %) is time of kernels (bytes and other work), 220 µs (69 %) gaps between them (launches), by nsys",
    ),
    "kernels that take longer, and gaps that save more": (
        traced(count=1, kernel_ns=220e3, gap_ns=0),
        220e3,
        "of 250 µs saved, -20.0 µs (-8 %) is time of kernels (bytes and other work), 270 µs (108 %) gaps between them (launches), by nsys",
    ),
    "slower: more gaps": (
        traced(count=20, kernel_ns=10e3, gap_ns=30e3),
        770e3,
        "of 300 µs added, 0 ns (0 %) is time of kernels (bytes and other work), 300 µs (100 %) gaps between them (launches), by nsys",
    ),
}


@pytest.mark.parametrize("case", SPLITS)
def test_the_time_saved_is_split_into_that_of_kernels_and_that_between_them(case):
    compiled, took_ns, expected = SPLITS[case]
    times = {"baseline": EAGER.span_ns, "optimized": took_ns}
    (reason,) = reasons(row_of({}, {}, (EAGER, compiled), clock="launch", sides_ns=times))
    assert reason.words.rpartition("; ")[2] == expected


def test_kernels_of_the_same_number_are_not_split():
    faster = traced(count=10, kernel_ns=10e3, gap_ns=10e3)
    (reason,) = reasons(row_of({}, {}, (EAGER, faster), clock="launch", sides_ns={"baseline": EAGER.span_ns, "optimized": faster.span_ns}))
    assert "saved" not in reason.words


def test_copies_under_kernels_are_a_reason():
    overlapped = a_step(copies=4, overlap_share=0.95, span_ns=500e3)
    (reason,) = reasons(row_of({}, {}, (a_step(copies=4, overlap_share=0.0), overlapped), **TIMED))
    assert reason.words == "copies under kernels 0 % → 95 % (by nsys)"


@pytest.mark.parametrize("mode", ["burst", "cold_start"])
def test_kernels_that_contradict_what_was_timed_explain_nothing(mode):
    slower = {"sides_ns": {"baseline": 574e3, "optimized": 800e3}}
    assert not list(reasons(row_of(BY_COLUMNS, BY_TILES, mode=mode, **slower)))


def test_a_pair_that_is_not_decided_has_no_reason():
    alike = {"sides_ns": {"baseline": 1001e3, "optimized": 1000e3}}
    assert not list(reasons(row_of(BY_COLUMNS, BY_TILES, **alike)))
    assert not list(reasons(row_of(BY_COLUMNS, BY_TILES, mode="cold_start")))


def test_a_row_that_was_not_timed_says_what_was_counted():
    row = row_of(BY_COLUMNS, BY_TILES).model_copy(update={"timings": {}})
    assert [reason.title for reason in reasons(row)] == ["Why optimized is faster"]


STEPS_NS = {"baseline": 4.16e6, "wide": 574e3, "late": 287e3, "optimized": 280e3, "library": 200e3}


def a_ladder(**changes):
    """Rows by columns, then by tiles; two steps halve what is left, of which the last is no step that a profiler saw another time in."""
    counted = {"baseline": BY_COLUMNS, "wide": BY_TILES, "late": BY_TILES | {TIME: 287e3}, "optimized": BY_TILES | {TIME: 287e3}}
    profiles = {side: SideProfile(counters=counters) for side, counters in (counted | {"library": BY_TILES | {TIME: 200e3}}).items()}
    timing = a_recorded_timing(units=recorded_ladder(STEPS_NS, deviation=0.0005), **changes)
    return a_row(sides={side: a_side(side, profile=profile) for side, profile in profiles.items()}, timings={"default": timing})


def test_a_step_of_a_ladder_is_set_against_the_step_before_it():
    told = {reason.title: reason.words for reason in reasons(a_ladder())}
    assert list(told) == ["Why wide is faster", "Why late is faster than wide", "Why library is faster"]
    assert told["Why wide is faster"].startswith(f"the L2 was busy for 3.39 ms of 4.16 ms ({L2_PERCENT}), now for 475 µs of 574 µs")
    assert told["Why late is faster than wide"].startswith(f"the L2 was busy for 475 µs of 574 µs ({L2_PERCENT}), now for 237 µs of 287 µs")
    assert "4.16 ms" in told["Why library is faster"]


def test_steps_of_a_ladder_of_another_goal_are_set_against_the_baseline_as_speedups_are():
    rungs = {side: an_interval(2.0, 0.1) for side in ("wide", "late", "optimized")}
    titles = [reason.title for reason in reasons(a_ladder(goal="joules", rungs=rungs))]
    assert titles == [f"Why {side} is faster" for side in ("wide", "late", "optimized", "library")]


def test_both_reports_say_it():
    row = row_of(BY_COLUMNS, BY_TILES)
    assert "| ch07:transpose | Why optimized is faster | the L2 was busy" in markdown(a_run(), [row])
    facts = next(text for _, text in Page(html(a_run(), [row])).all("section") if text.startswith("Why"))
    assert "Why optimized is faster the L2 was busy for 3.39 ms" in facts
