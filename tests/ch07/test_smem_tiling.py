"""ch07:smem_tiling: the compiled sides ask the L1 and shared memory as often as the expectation counts."""

import pytest

from tests.ch07.sides import CHAPTER, constants, text_of
from tests.support.cuda_sides import kernels_of

BASELINE, OPTIMIZED = "baseline_smem_tiling.cu", "optimized_smem_tiling.cu"


def test_launches_are_the_same():
    assert constants(BASELINE) == constants(OPTIMIZED)
    assert len({text_of(side)[text_of(side).index("LAUNCH(") :] for side in (BASELINE, OPTIMIZED)}) == 1


@pytest.mark.parametrize("architecture", ["90a", "100a"])
def test_a_tile_of_32_products_takes_40_requests_and_four_to_load(architecture):
    (kernel,) = kernels_of(CHAPTER / OPTIMIZED, architecture)
    names = [text.split()[0] for text in kernel.instructions]
    assert sum(name.startswith("FFMA") for name in names) == 32  # the loop is there once
    assert sum(name.startswith("LDS") for name in names) == 40
    assert sum(name.startswith(("LDG", "STS")) for name in names) == 4
