"""ch07:l2_streaming: the expected ratio is that of an L2 that keeps what was last used, and the sides differ in their hints only."""

import math
import re

import pytest

from common.python.directives import read_directives
from common.python.loader import load_workload
from tests.ch07.sides import CHAPTER, arguments, text_of
from tests.teeth import assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_l2_streaming.py")
BASELINE, OPTIMIZED = "baseline_l2_streaming.cu", "optimized_l2_streaming.cu"
HALF_OF_L2, STREAMED, ROW = 30e6, 256, 128  # bytes: of an H200; of a token, once; of the table, again and again


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["x", "table", "kind", "y", "tokens", "stream"]


def share_of_rows_that_miss(table):
    """Of rows drawn at random from `table` bytes, in a cache of the last bytes used: those streamed and the rows between them."""
    tokens = 0
    while tokens * STREAMED + table * (1 - math.exp(-tokens * ROW / table)) < HALF_OF_L2:
        tokens += 100
    return math.exp(-tokens * ROW / table)


def test_the_expected_ratio_is_that_of_the_rows_that_miss():
    pattern = r"^([\d.]+)x, a token of (\d+) bytes; before, (\d+) % .* (\d+) bytes more"
    ratio, token, share, more = map(float, re.search(pattern, read_directives(CHAPTER / OPTIMIZED).expects).groups())
    missed = share_of_rows_that_miss(ROW * WORKLOAD.time_at["kinds"])
    assert share / 100 == pytest.approx(missed, abs=0.01)
    assert more == pytest.approx(missed * ROW, abs=1)
    assert token == STREAMED + 4
    assert ratio == pytest.approx((token + more) / token, abs=0.05)


def test_the_table_fits_half_of_the_l2_and_its_rows_are_read_ten_times():
    assert ROW * WORKLOAD.time_at["kinds"] < HALF_OF_L2
    assert 10 < WORKLOAD.time_at["tokens"] / WORKLOAD.time_at["kinds"] < 11


def test_the_sides_differ_in_their_hints_only():
    def code(side):
        plain = re.sub(r"__stcs\(y \+ i, __ldcs\(x \+ i\)(.*)\);", r"y[i] = x[i]\1;", text_of(side))
        return re.sub(r"//.*", "", plain).split()

    assert code(BASELINE) == code(OPTIMIZED)


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[2])
