"""What a side had less of is said of the unit that bound it, by counters that fell; what rose or idled explains nothing."""

import pytest

from common.python.html_report import html
from common.python.ncu_tables import DRAM_PERCENT, L1_PERCENT, L2_PERCENT, SM_PERCENT, TIME
from common.python.report import markdown
from common.python.results import SideProfile
from common.python.why_faster import reasons
from tests.common.python.factories import a_row, a_run, a_side
from tests.common.python.html_page import Page

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


def row_of(baseline, optimized):
    profiles = {"baseline": baseline, "optimized": optimized}
    return a_row(sides={side: a_side(side, profile=SideProfile(counters=counters)) for side, counters in profiles.items()})


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
    assert words.startswith("no unit had so much less to do, so it waited less: long_scoreboard 30,000,000 → 12,000,000 warp cycles")
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


def test_both_reports_say_it():
    row = row_of(BY_COLUMNS, BY_TILES)
    assert "| ch07:transpose | Why optimized is faster | the L2 was busy" in markdown(a_run(), [row])
    facts = next(text for _, text in Page(html(a_run(), [row])).all("section") if text.startswith("Why"))
    assert "Why optimized is faster the L2 was busy for 3.39 ms" in facts
