"""Figures are rounded once, in the unit that reads best."""

import pytest

from common.python.report.rows import (
    break_even_text,
    compilation_text,
    conditions_text,
    machine_text,
    notes_of,
    remarks,
    settings_text,
    span_text,
)
from common.python.results import Interval, Setup, StopReason
from common.python.settings import Settings
from common.python.wording import bytes_text, interval_text, seconds_text, speedup_text, time_text
from tests.support.factories import MACHINE, a_row, a_run, a_side, a_timing, an_interval


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0.35, "0.350 ns"),
        (4.2, "4.20 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (36_700.0, "36.7 µs"),
        (1_290_000.0, "1.29 ms"),
        (999_999.0, "1.00 ms"),
        (12.34e9, "12.3 s"),
        (1234e9, "1234 s"),
        (0.0, "0 ns"),
    ],
)
def test_times_have_three_digits_and_an_engineering_unit(ns, text):
    assert time_text(ns) == text


def test_bytes_have_binary_units():
    assert bytes_text(1536) == "1.50 KiB"
    assert bytes_text(3 << 30) == "3.00 GiB"


@pytest.mark.parametrize(
    ("estimate", "half_width", "text"),
    [
        (2.31, 0.03, "2.31x [2.28, 2.34]"),
        (1.0834, 0.0027, "1.083x [1.081, 1.086]"),
        (1.0834, 0.0, "1.08x [1.08, 1.08]"),
        (12.3, 1.5, "12.3x [10.8, 13.8]"),
        (390.2, 5.0, "390x [385, 395]"),
        (0.97, 0.1, "0.970x [0.870, 1.070]"),
    ],
)
def test_a_speedup_shows_the_first_digit_that_its_interval_leaves_open(estimate, half_width, text):
    assert speedup_text(an_interval(estimate, half_width)) == text


def test_a_time_and_its_interval_share_a_unit():
    assert interval_text(Interval(estimate=999.8, low=990.0, high=1010.0)) == "1.00 µs [0.99, 1.01]"


def test_set_up_pays_only_where_the_speedup_is_sure():
    # 0.25 s more set-up, 48 us gained a call.
    row = a_row()
    assert break_even_text(row, row.timings["default"], "optimized") == "5,209"
    assert break_even_text(row, row.timings["default"], "baseline") == ""

    unsure = a_timing({"baseline": 101.0, "optimized": 100.0})
    assert unsure.speedups["optimized"].low < 1 < unsure.speedups["optimized"].estimate
    assert break_even_text(a_row(timings={"default": unsure}), unsure, "optimized") == ""


def test_a_side_that_is_cheaper_to_set_up_has_paid_at_once():
    cheap = Setup(load_s=0.0, prepare_s=0.0, first_call_s=0.0)
    row = a_row(sides={"baseline": a_side("baseline"), "optimized": a_side(setup=cheap)})

    assert break_even_text(row, row.timings["default"], "optimized") == "0"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"interleaved": False}, "not interleaved"),
        ({"launch_latency_hidden": False}, "launch latency is not hidden"),
        ({"stop_reason": StopReason.UNIT_CAP}, "most units allowed"),
        ({"stop_reason": StopReason.TIME_BUDGET}, "its time was up"),
        ({"stop_reason": StopReason.THROTTLED}, "throttled"),
        ({"places": {"x": "pinned", "y": "pinned"}, "numa_nodes": (0, 1)}, "x, y in pinned memory, NUMA node 0 and 1"),
        ({"places": {"x": "pageable"}}, "x in pageable memory: a copy can block, so no stream was held"),
        ({"notes": ("power cap held",)}, "power cap held"),
        ({"repeats": {"optimized": (an_interval(2.3, 0.1), an_interval(2.29, 0.1))}}, "optimized over 2 repeats: 2.290x to 2.300x"),
    ],
)
def test_what_lowers_certainty_is_said(changes, note):
    assert notes_of(a_timing()) == []
    (said,) = notes_of(a_timing(**changes))
    assert note in said


def test_a_host_clock_hides_no_launch_latency_and_needs_no_note():
    assert notes_of(a_timing(device="cpu", clock="host", launch_latency_hidden=False)) == []


def test_conditions_say_that_torch_has_one_thread_on_a_cpu():
    on_a_cpu = a_timing(device="cpu", clock="host", launch_latency_hidden=False)
    assert conditions_text(on_a_cpu) == "cpu with one torch thread, host clock, cold, burst"
    assert conditions_text(a_timing()) == "cuda, device clock, cold, burst"


def test_the_machine_is_one_line():
    assert machine_text(MACHINE) == "NVIDIA H200 (driver 580.1); Some CPU, 2 cores; torch 2.13.0; commit 0123456789 with changes"
    assert machine_text(MACHINE | {"gpus": MACHINE["gpus"] * 2}).startswith("2 x NVIDIA H200 (driver 580.1); ")
    assert machine_text({}) == "no GPU"
    pairs = {"root": {"commit": "fedcba98765432", "dirty": False}}
    assert machine_text(MACHINE | pairs).endswith("; harness 0123456789 with changes; pairs fedcba9876")
    assert machine_text(MACHINE | {"root": None}).endswith("; harness 0123456789 with changes; pairs without a commit")
    assert machine_text(MACHINE | {"root": MACHINE["project"]}).endswith("; commit 0123456789 with changes")
    assert machine_text(pairs) == "no GPU; pairs fedcba9876"


def test_only_settings_that_were_chosen_are_told():
    assert settings_text(a_run()) == "seed 7; default settings"
    assert settings_text(a_run(Settings(iterations=20, sustained=True))) == "seed 7; iterations 20; sustained"
    assert settings_text(a_run(Settings(targets=("ch06", "ch07"), sweep={"n": ("1", "2")}))) == "seed 7; targets ch06, ch07; sweep n=1, 2"


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ("", "2026-01-02 22:04:05 UTC"),
        ("soon", "2026-01-02T23:04:05+01:00 to soon"),
        ("2026-01-02T22:59:00+00:00", "2026-01-02 22:04:05 to 22:59:00 UTC"),
        ("2026-01-03T01:00:00+02:00", "2026-01-02 22:04:05 to 23:00:00 UTC"),
        ("2026-01-03T00:30:00+00:00", "2026-01-02 22:04:05 to 2026-01-03 00:30:00 UTC"),
    ],
)
def test_when_a_run_was_is_told_in_utc_and_its_day_once(ended, said):
    assert span_text(a_run(started="2026-01-02T23:04:05+01:00", ended=ended)) == said


def test_a_row_of_compiled_sides_says_what_it_took_beside_its_first_compilation():
    took = {"seconds": 63.2, "first_compilation_s": 40.1, "beyond_compilation_s": 23.1}
    text = "took 63 s: first compilation 40 s, beside it 23 s"
    assert f"ch07:transpose: {text}" in remarks(a_row(**took), everything=True)
    assert not any("took" in line for line in remarks(a_row(**took)))
    set_up = a_row(**took, timings={"default": a_timing(goal="setup")})
    assert compilation_text(set_up) == "took 63 s: its goal is set-up, so every process compiles"
    assert compilation_text(a_row(seconds=63.2)) == ""


def test_seconds_have_three_digits_at_most():
    assert [seconds_text(each) for each in (0.0647924, 0.5, 1.2, 12.5, 240.0, 3600.0)] == [
        "0.0648 s",
        "0.5 s",
        "1.2 s",
        "12.5 s",
        "240 s",
        "3600 s",
    ]
