"""What pairs of chapter 9 claim of their machine code is in it, and what they prove by it is not in the baseline's."""

import pytest

from tests.ch09.sides import CHAPTER
from tests.proved import unexpected


@pytest.mark.parametrize("pair", ["inline_ptx", "tensor_core", "tiling"])
def test_all_that_is_claimed_is_in_the_machine_code_and_separates_the_sides(pair, tmp_path):
    assert unexpected(CHAPTER / f"optimized_{pair}.cu", CHAPTER / f"baseline_{pair}.cu", "90a", tmp_path) == {}
