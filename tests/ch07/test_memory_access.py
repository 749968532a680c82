"""ch07:memory_access: both layouts give the vectors, also with new tokens, and the expected ratio is that of sectors."""

import pytest

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch07.sides import CHAPTER, SECTOR
from tests.teeth import CPU, ROOT, assert_accepts, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_memory_access.py")


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_a_side_is_right(side, shape):
    assert_accepts(WORKLOAD, f"ch07/{side}_memory_access.py", shape)


def test_the_tolerance_takes_nothing_wrong():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[2])


def test_tokens_are_distinct_so_that_the_least_work_reads_a_row_for_each():
    shape = WORKLOAD.check_at[2]
    token = Inputs(WORKLOAD, shape, 1, CPU, ROOT).values["token"]
    assert token.unique().numel() == shape["tokens"]
    assert WORKLOAD.work(**shape)["dram_read"] == 4 * shape["features"] * shape["tokens"] + 8 * shape["tokens"]


def test_the_expected_ratio_is_a_sector_for_a_float():
    expects = read_directives(CHAPTER / "optimized_memory_access.py").expects
    assert float(expects.partition("x,")[0]) == (SECTOR + 4) / (4 + 4)


@pytest.mark.parametrize("shape", [WORKLOAD.time_at, WORKLOAD.cpu_at], ids=str)
def test_no_stride_is_a_power_of_two_that_would_put_a_token_into_one_set_of_a_cache(shape):
    assert shape["vocabulary"].bit_count() > 1
