"""ch07:memory_access: tokens are distinct, and no stride puts them into one set of a cache."""

import pytest

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from tests.ch07.sides import CHAPTER
from tests.support.teeth import CPU, ROOT

WORKLOAD = load_workload(CHAPTER / "workload_memory_access.py")


def test_tokens_are_distinct_so_that_the_least_work_reads_a_row_for_each():
    shape = WORKLOAD.check_at[2]
    token = Inputs(WORKLOAD, shape, 1, CPU, ROOT).values["token"]
    assert token.unique().numel() == shape["tokens"]
    assert WORKLOAD.work(**shape)["dram_read"] == 4 * shape["features"] * shape["tokens"] + 8 * shape["tokens"]


@pytest.mark.parametrize("shape", [WORKLOAD.time_at, WORKLOAD.cpu_at], ids=str)
def test_no_stride_is_a_power_of_two_that_would_put_a_token_into_one_set_of_a_cache(shape):
    assert shape["vocabulary"].bit_count() > 1
