"""ncu's tables as it prints them: units, thousands, what is not counted, ranges; and several launches taken together."""

import pytest

from common.python.profile.ncu import (
    DRAM_BYTES,
    TIME,
    Profiled,
    UnreadableTable,
    by_kernel,
    read_file,
    read_table,
    side_of,
    telling,
    together,
)

RAW = """==PROF== Connected to process 71 (/usr/bin/python3.12)
"ID","Process ID","Process Name","Host Name","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",\
"Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC","dram__bytes.sum","gpu__time_duration.sum","smsp__inst_executed.sum","lts__t_sector_hit_rate.pct"
"","","","","","","","","","","","","","Mbyte","us","inst","%"
"0","71","python3.12","127.0.0.1","","<default domain>:a/baseline:none:none","copy(const float *, int)","1","7","(256, 1, 1)",\
"(16384, 1, 1)","0","9.0","134.22","1,205.50","4,194,304","n/a"
==WARNING== Backing up device memory
"1","71","python3.12","127.0.0.1","<default domain>:a/optimized_b:none","","copy(const float *, int)","1","7","(256, 1, 1)",\
"(16384, 1, 1)","0","9.0","134.20","30.25","1,024","61.5"
==PROF== Disconnected from process 71
"""
DETAILS = """"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","19963","saxpy","Command line profiler metrics","gpu__time_duration.sum","us","211.94"
"0","19963","saxpy","Command line profiler metrics","dram__bytes.sum","Kbyte","2"
"1","19963","saxpy","Command line profiler metrics","gpu__time_duration.sum","us","203.02"
"""


def test_a_raw_page_is_read_in_base_units():
    first, second = read_table(RAW, "a.csv")
    assert first.kernel == "copy(const float *, int)"
    assert first.counters == {DRAM_BYTES: pytest.approx(134.22e6), TIME: 1_205_500, "smsp__inst_executed.sum": 4_194_304}
    assert second.counters["lts__t_sector_hit_rate.pct"] == 61.5
    assert second.counters[TIME] == 30_250


def test_a_launch_belongs_to_the_side_whose_range_of_either_kind_it_is_in():
    labels = ("a/baseline", "a/optimized", "a/optimized_b")
    assert [side_of(launch, labels) for launch in read_table(RAW, "a.csv")] == ["a/baseline", "a/optimized_b"]
    assert side_of(Profiled("copy", "", {}), labels) == ""


def test_a_page_with_a_row_a_counter_is_read_too():
    launches = read_table(DETAILS, "a.csv")
    assert [launch.counters for launch in launches] == [{TIME: 211_940, DRAM_BYTES: 2000}, {TIME: 203_020}]


@pytest.mark.parametrize("text", ["", "==ERROR== nothing\n", "a,b\n1,2\n"])
def test_a_text_without_a_table_is_named(text):
    with pytest.raises(UnreadableTable, match=r"a\.csv: no table of ncu's in it"):
        read_table(text, "a.csv")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UnreadableTable, match="No such file"):
        read_file(tmp_path / "a.csv")


def test_sums_are_summed_shapes_are_the_largest_and_the_rest_is_weighted_by_time():
    launches = [
        Profiled("a", "", {TIME: 100.0, DRAM_BYTES: 1.0, "launch__cluster_dim_x": 2.0, "sm__throughput.avg.pct": 10.0}),
        Profiled("a", "", {TIME: 300.0, DRAM_BYTES: 5.0, "launch__cluster_dim_x": 1.0, "sm__throughput.avg.pct": 50.0}),
        Profiled("b", "", {TIME: 600.0, "dram__bytes.sum.per_second": 7.0}),
    ]
    assert together(launches) == {
        TIME: 1000.0,
        DRAM_BYTES: 6.0,
        "launch__cluster_dim_x": 2.0,
        "sm__throughput.avg.pct": 40.0,
        "dram__bytes.sum.per_second": 7.0,
    }
    assert {kernel: len(mine) for kernel, mine in by_kernel(launches).items()} == {"a": 2, "b": 1}
    assert together([Profiled("a", "", {TIME: 0.0, "x.ratio": 3.0})])["x.ratio"] == 3.0


def test_of_hundreds_of_counters_those_that_tell_something_are_kept_and_those_that_a_claim_names():
    stall = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
    counters = {DRAM_BYTES: 1.0, stall: 2.0, "device__attribute_clock_rate": 3.0, "smsp__x.max": 4.0}
    assert telling(counters, ["smsp__x.max"]) == {DRAM_BYTES: 1.0, stall: 2.0, "smsp__x.max": 4.0}
