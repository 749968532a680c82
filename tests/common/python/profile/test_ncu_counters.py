"""Which counters explain a difference, and how they are shown: in tables, and in words beside the idea."""

import pytest

from common.python.profile.ncu import DRAM_BYTES, REGISTERS, SM_PERCENT, TIME, Moved, moved, ranked, stall_text, value_text
from common.python.report.html import html
from common.python.report.tables import markdown
from common.python.results import SideProfile
from tests.support.factories import a_row, a_run, a_side
from tests.support.html_page import Page
from tests.support.profiles import AFTER, BEFORE, CONFLICTS, profiled_row


def test_what_moved_most_stands_first_and_what_hardly_moved_is_left_out():
    found = list(moved(profiled_row()))
    assert [(each.side, each.counter) for each in found] == [("optimized", name) for name in (CONFLICTS, DRAM_BYTES, REGISTERS)]
    assert found[1].words == "dram__bytes.sum 256 MiB → 128 MiB (0.50x)"


@pytest.mark.parametrize(("before", "after", "ratio"), [(3.0, 0.0, 1 / 3), (0.0, 0.0, None), (0.0, 3e6, 3e6)])
def test_a_zero_is_taken_for_one(before, after, ratio):
    found = ranked("optimized", {CONFLICTS: before}, {CONFLICTS: after})
    assert [each.ratio for each in found] == ([] if ratio is None else [pytest.approx(ratio)])


def test_few_events_in_many_instructions_are_as_good_as_none():
    instructions = {"smsp__inst_executed.sum": 136e6}
    few, many = ranked("optimized", {CONFLICTS: 0.0, **instructions}, {CONFLICTS: 4e5, **instructions}), {CONFLICTS: 3e7, **instructions}
    assert few == []
    assert [each.ratio for each in ranked("optimized", {CONFLICTS: 0.0, **instructions}, many)] == [pytest.approx(3e7 / 1.36e6)]


def test_a_counter_of_one_side_alone_is_compared_with_nothing():
    assert ranked("optimized", {}, AFTER) == []
    assert list(moved(a_row(sides={"baseline": a_side("baseline"), "optimized": a_side(profile=SideProfile(counters=AFTER))}))) == []


@pytest.mark.parametrize(
    ("counter", "value", "text"),
    [
        (TIME, 36_700.0, "36.7 µs"),
        (SM_PERCENT, 20.4, "20.4 %"),
        (DRAM_BYTES, 134_217_728.0, "128 MiB"),
        (REGISTERS, 32.0, "32"),
        (CONFLICTS, 33_000_000.0, "33,000,000"),
        ("smsp__thread_inst_executed_per_inst_executed.ratio", 31.25, "31.2"),
    ],
)
def test_a_value_has_the_unit_that_its_name_tells(counter, value, text):
    assert value_text(counter, value) == text


def test_the_reason_that_warps_waited_for_most():
    assert stall_text(BEFORE) == "long_scoreboard 8.00"
    assert stall_text(AFTER) == ""


def test_both_reports_show_the_step_the_kernels_and_what_moved():
    text = markdown(a_run(), [profiled_row()])
    assert "| ch07:transpose | baseline | nsys | 2 | 3 | 1 | 5.00 µs | 100 µs | 10 % | 50 % |" in text
    assert "| ch07:transpose | optimized | tiled(float \\*) | 36.7 µs | 128 MiB |  |  |  | 20.4 % |  |  |  | 32 |  |" in text
    assert "| ch07:transpose | optimized | dram\\_\\_bytes.sum | 256 MiB | 128 MiB | 0.50x |" in text
    page = Page(html(a_run(), [profiled_row()]))
    assert any("dram__bytes.sum 256 MiB 128 MiB 0.50x" in text for _, text in page.all("section"))


@pytest.mark.parametrize(("before", "after", "text"), [(2.0, 1.0, "0.50x"), (0.16, 0.0, "0x"), (0.0, 5.0, ""), (1e8, 9e4, "0.000900x")])
def test_a_ratio_that_is_shown_is_that_of_the_two_values_beside_it(before, after, text):
    assert Moved("optimized", "a", before, after, least=0.1).ratio_text == text


def test_a_row_without_a_profile_has_no_such_tables():
    text = markdown(a_run(), [a_row()])
    assert not any(title in text for title in ("A step, traced", "Counters of a step", "Counters that moved"))
