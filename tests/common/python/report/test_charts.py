"""What is drawn is where it belongs: every value in its place, none lost, and the axis says what it is an axis of."""

import itertools
import math
import re

import pytest

from common.python.report.charts import (
    BOX_HEIGHT,
    BOX_WIDTH,
    MOST_TICKS,
    Axis,
    Reach,
    curve,
    deviation_text,
    effect_of,
    powers,
    roofline,
    round_values,
    speedup_axis,
    strip,
)
from common.python.results import Interval
from tests.support.factories import an_interval


def marks_of(path):
    """Where the marks of a path are, in units of the box."""
    here, found = (0, 0), []
    for dx, dy, pen, length in re.findall(r"m(-?\d+)([+-]\d+)([hv])(\d+)", path):
        here = (here[0] + int(dx), here[1] + int(dy))
        found.append(here)
        here = (here[0] + int(length), here[1]) if pen == "h" else (here[0], here[1] + int(length))
    return found


# --- axes


def test_a_log_axis_puts_the_geometric_mean_in_the_middle_and_the_rest_at_its_edges():
    axis = Axis(0.5, 8.0, is_log=True)

    assert [axis.at(value) for value in (0.5, 2.0, 8.0, 0.0, -3.0, 1e9)] == [0.0, 50.0, 100.0, 0.0, 0.0, 100.0]
    assert axis.from_top(8.0) == 0.0


@pytest.mark.parametrize("high", [1e-6, 0.0123, 0.9, 7.7, 1234.5, 9.9e11])
@pytest.mark.parametrize("low", [-1.0, -0.03, 0.0])
def test_round_values_are_few_round_inside_and_evenly_apart(low, high):
    low *= high
    values = round_values(low, high)
    steps = {float(f"{after - before:.6g}") for before, after in itertools.pairwise(values)}

    assert 2 <= len(values) <= MOST_TICKS
    assert len(steps) == 1
    assert f"{steps.pop():.3e}"[:5] in ("1.000", "2.000", "5.000")
    assert all(low - 1e-9 * high <= value <= high * (1 + 1e-9) for value in values)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.9, 12.0, [1, 2, 5, 10]),
        (0.2, 60.0, [0.1, 1, 10]),
        (0.04, 0.9, [0.05, 0.1, 0.2, 0.5]),
        (1e-3, 1e3, [1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3]),
        (1.0, 1e12, [1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
    ],
)
def test_powers_thin_out_as_the_axis_grows(low, high, expected):
    expected = [value for value in expected if value >= low]

    assert powers(low, high) == pytest.approx(expected)


# --- speedups


@pytest.mark.parametrize(
    ("low", "high", "effect"),
    [(1.001, 1.2, "faster"), (0.8, 0.999, "slower"), (0.99, 1.01, "undecided"), (1.0, 1.2, "undecided"), (0.8, 1.0, "undecided")],
)
def test_an_effect_is_claimed_only_where_the_whole_interval_is_beyond_1x(low, high, effect):
    assert effect_of(Interval(estimate=(low + high) / 2, low=low, high=high)) == effect


def test_all_speedups_share_an_axis_that_holds_them_and_1x():
    speedups = [an_interval(2.0, 0.1), an_interval(0.5, 0.02), an_interval(30.0, 5.0)]
    chart = speedup_axis(speedups)
    whiskers = [chart.whisker(speedup) for speedup in speedups]

    assert all(0 < whisker.low < whisker.at < whisker.high < 100 for whisker in whiskers)
    assert 0 < whiskers[1].high < chart.one < whiskers[0].low
    assert {tick.label: tick.at for tick in chart.ticks}["1x"] == chart.one
    # A log axis: twice as fast and half as fast are as far from 1x.
    assert whiskers[0].at - chart.one == pytest.approx(chart.one - whiskers[1].at, abs=0.02)


def test_noise_does_not_fill_the_axis():
    chart = speedup_axis([an_interval(1.0002, 0.0005)])
    whisker = chart.whisker(an_interval(1.0002, 0.0005))

    assert whisker.high - whisker.low < 2
    assert [tick.label for tick in chart.ticks] == ["0.96x", "0.98x", "1x", "1.02x", "1.04x"]


def test_a_chart_of_no_speedup_has_an_axis_all_the_same():
    assert "1x" in [tick.label for tick in speedup_axis([]).ticks]


def test_an_absurd_interval_is_drawn_to_the_edge():
    absurd = Interval(estimate=1.0, low=-1.0, high=1e300)
    chart = speedup_axis([absurd])

    assert chart.whisker(absurd).effect == "undecided"
    assert 0 <= chart.whisker(absurd).low < chart.one < chart.whisker(absurd).high <= 100


# --- samples


def test_every_sample_is_drawn_once_in_order_in_its_own_unit():
    units = [[100.0, 101.0, 99.0], [102.0, 98.0, 100.0], [100.0, 100.5, 99.5]]
    drawn = strip(units, an_interval(100.0, 0.5))
    dots = marks_of(drawn.dots)

    assert drawn.values == len(dots) == 9
    assert drawn.outside == 0
    assert drawn.beyond == ""
    assert [x for x, _ in dots] == sorted(x for x, _ in dots)
    assert [int(x / BOX_WIDTH * 3) for x, _ in dots] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert all(0 <= y <= BOX_HEIGHT for _, y in dots)
    # Higher is more, and equal values are equally high.
    heights = [y for _, y in dots]
    assert heights.index(min(heights)) == 3
    assert heights.index(max(heights)) == 4
    assert heights[0] == heights[5] == heights[6]
    assert drawn.stripes == ((33.33, 33.33),)


def test_a_sample_far_off_is_marked_at_the_edge_and_counted_and_does_not_flatten_the_rest():
    usual = [100.0 + 0.1 * (index % 5) for index in range(40)]
    drawn = strip([[*usual, 300.0, 50.0]], an_interval(100.2, 0.05))
    high, low = marks_of(drawn.beyond)

    assert (drawn.values, drawn.outside, drawn.furthest) == (42, 2, pytest.approx(199.4, abs=0.1))
    assert len(marks_of(drawn.dots)) == 40
    assert high[1] == 0
    assert low[1] > BOX_HEIGHT * 0.9
    heights = [y for _, y in marks_of(drawn.dots)]
    assert max(heights) - min(heights) > BOX_HEIGHT / 2


def test_the_band_is_the_interval_of_the_estimate():
    drawn = strip([[99.0, 100.0, 101.0]] * 2, Interval(estimate=100.0, low=99.5, high=100.25))
    ticks = {tick.label: tick.at for tick in drawn.ticks}
    percent = ticks["0 %"] - ticks["+0.5 %"]

    assert drawn.band[0] == pytest.approx(ticks["0 %"] - percent / 2, abs=0.02)
    assert drawn.band[1] == pytest.approx(1.5 * percent, abs=0.03)


def test_a_unit_of_several_values_shows_its_median_and_one_of_a_single_value_is_its_own():
    several = strip([[1.0, 2.0, 9.0], [3.0, 3.0, 3.0]], an_interval(2.5, 0.1))
    single = strip([[1.0], [2.0]], an_interval(1.5, 0.5))

    assert len(marks_of(several.medians)) == 2
    assert single.medians == ""
    assert len(marks_of(single.dots)) == 2


def test_values_that_are_all_the_same_lie_in_the_middle():
    drawn = strip([[7.0, 7.0], [7.0]], Interval(estimate=7.0, low=7.0, high=7.0))

    assert {y for _, y in marks_of(drawn.dots)} == {BOX_HEIGHT // 2}
    assert [tick.label for tick in drawn.ticks] == ["+1 %", "+0.5 %", "0 %", "-0.5 %", "-1 %"][::-1]


def test_a_dot_costs_a_few_bytes():
    drawn = strip([[100 + math.sin(index) for index in range(500)]] * 4, an_interval(100.0, 0.1))

    assert len(drawn.dots) < 10 * drawn.values


def test_deviations_are_signed():
    assert [deviation_text(value) for value in (0.5, -2.0, 0.0, -1e-15, 0.25)] == ["+0.5 %", "-2 %", "0 %", "0 %", "+0.25 %"]


# --- roofline


def test_a_pair_stands_in_one_column_under_the_roof_as_far_apart_as_its_speedup():
    chart = roofline(
        [
            [Reach("baseline", an_interval(0.2, 0.01), 1e5), Reach("optimized", an_interval(0.8, 0.01), 1e5)],
            [Reach("baseline", an_interval(0.1, 0.01), 1e7), Reach("optimized", an_interval(0.4, 0.01), 1e7)],
        ]
    )
    first, second, third, fourth = chart.dots

    assert [dot.number for dot in chart.dots] == [1, 1, 2, 2]
    assert [dot.is_highest for dot in chart.dots] == [False, True, False, True]
    assert first.x == second.x < third.x == fourth.x
    assert chart.roof < second.top < second.y < second.bottom < first.y
    assert first.y - second.y == pytest.approx(third.y - fourth.y, abs=0.02)
    assert chart.gains == ((first, second), (third, fourth))
    assert {tick.label: tick.at for tick in chart.y_ticks}["100 %"] == chart.roof
    assert [tick.label for tick in chart.x_ticks] == ["100 µs", "1.00 ms", "10.0 ms"]


def test_nothing_is_hidden_behind_another_pair_of_the_same_work():
    chart = roofline([[Reach("optimized", an_interval(0.9, 0.01), ns)] for ns in (1e5, 1e5, 2e6, 1.01e5)])
    places = sorted(dot.x for dot in chart.dots)

    assert all(after - before >= 2.9 for before, after in itertools.pairwise(places))
    assert chart.dots[0].x < chart.dots[1].x < chart.dots[3].x < chart.dots[2].x


@pytest.mark.parametrize("count", [1, 9, 30, 80])
def test_pairs_of_the_same_work_stay_inside_and_apart(count):
    # The one far to the left has the others at the right edge.
    others = [[Reach("optimized", an_interval(0.9, 0.01), 1e6)] for _ in range(count)]
    chart = roofline([[Reach("optimized", an_interval(0.9, 0.01), 1e3)], *others])
    places = [dot.x for dot in chart.dots]

    assert all(0 <= place < 100 for place in places)
    assert all(after - before >= min(2.9, 99 / (count + 2)) for before, after in itertools.pairwise(places))


def test_a_share_above_one_is_above_the_roof_and_inside_the_plot():
    (dot,) = roofline([[Reach("optimized", an_interval(1.03, 0.01), 1e5)]]).dots
    chart = roofline([[Reach("optimized", an_interval(1.03, 0.01), 1e5)]])

    assert 0 < dot.top < dot.y < chart.roof


def test_a_sweep_has_a_line_a_side_over_values_at_their_logs():
    times = [("baseline", [an_interval(4e3, 40.0), an_interval(16e3, 160.0), an_interval(64e3, 640.0)])]
    drawn = curve(["1024", "4096", "16384"], times)
    assert [tick.at for tick in drawn.x_ticks] == [0.0, 50.0, 100.0]
    ((kind, path, points),) = drawn.lines
    assert kind == "baseline"
    assert path.count("L") == 2
    assert points[0].y > points[1].y > points[2].y  # y runs from the top
    assert points[0].y - points[1].y == pytest.approx(points[1].y - points[2].y, abs=0.02)
    assert all(point.top < point.y < point.bottom for point in points)


def test_words_of_a_sweep_stand_at_equal_distances():
    drawn = curve(["small", "large", "odd"], [("optimized", [an_interval(1e3, 10.0)] * 3)])
    assert [(tick.at, tick.label) for tick in drawn.x_ticks] == [(0.0, "small"), (50.0, "large"), (100.0, "odd")]
