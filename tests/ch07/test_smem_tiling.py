"""ch07:smem_tiling: the compiled sides ask the L1 and shared memory as often as the expectation counts."""

import re

import pytest
import torch

from common.python.build.sass import read_code
from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.directives import read_directives
from tests.ch07.sides import CHAPTER, arguments, constants, text_of
from tests.cuda_sides import built
from tests.teeth import CPU, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_smem_tiling.py")
BASELINE, OPTIMIZED = "baseline_smem_tiling.cu", "optimized_smem_tiling.cu"


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["a", "b", "c", "m", "n", "k", "stream"]


def test_launches_are_the_same():
    assert constants(BASELINE) == constants(OPTIMIZED)
    assert len({text_of(side)[text_of(side).index("LAUNCH(") :] for side in (BASELINE, OPTIMIZED)}) == 1


def test_a_tile_of_32_products_takes_the_requests_that_the_expectation_counts(tmp_path):
    ratio, before, after, loads = map(
        float,
        re.search(
            r"^([\d.]+)x, .* (\d+) turns of the L1 become (\d+) .* and (\d+) to load", read_directives(CHAPTER / OPTIMIZED).expects
        ).groups(),
    )
    for architecture in ("90a", "100a"):
        (kernel,) = read_code(built(CHAPTER / OPTIMIZED, tmp_path, architecture).library)
        names = [text.split()[0] for text in kernel.instructions]
        assert sum(name.startswith("FFMA") for name in names) == 32  # the loop is there once
        assert sum(name.startswith("LDS") for name in names) == after
        assert sum(name.startswith(("LDG", "STS")) for name in names) == loads
    assert before == 2 * 32
    assert ratio == pytest.approx(before / (after + loads), abs=0.06)


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[3], reduced=("a", 1))


def test_the_library_is_right():
    generator = torch.Generator(CPU).manual_seed(1)
    a, b = torch.randn(50, 130, generator=generator), torch.randn(130, 40, generator=generator) * 130**-0.5
    answer = import_file(CHAPTER / "library_smem_tiling.py").prepare(a, b, 50, 40)()
    assert (answer - WORKLOAD.reference(a.double(), b.double())).abs().max() <= WORKLOAD.atol
