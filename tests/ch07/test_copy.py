"""ch07:copy: the sides differ in which floats a thread takes, and that makes the sectors of a request 32 or 4."""

import re

import pytest

from tests.ch07.sides import CHAPTER, SECTOR, WARP, constants, text_of
from tests.support.cuda_sides import kernels_of

SECTORS = {"baseline_copy.cu": 32, "optimized_copy.cu": 4}


class Indices:
    """Which float a thread of a side takes in a pass, by the two expressions of its source."""

    def __init__(self, side):
        text = text_of(side)
        self.constants = constants(side)
        self.first, self.index = (re.search(rf"int {name} = ([^;]+);", text)[1].replace(".x", "") for name in ("first", "i"))

    def __call__(self, block, thread, k):
        names = {**self.constants, "blockIdx": block, "threadIdx": thread, "k": k}
        return eval(self.index, {}, {**names, "first": eval(self.first, {}, names)})


@pytest.mark.parametrize("side", SECTORS)
def test_two_blocks_take_every_float_once(side):
    index = Indices(side)
    threads, run = index.constants["THREADS"], index.constants["RUN"]
    taken = [index(block, thread, k) for block in range(2) for thread in range(threads) for k in range(run)]
    assert sorted(taken) == list(range(2 * threads * run))


@pytest.mark.parametrize("side", SECTORS)
def test_a_request_touches_32_sectors_or_4(side):
    index = Indices(side)
    for block, warp, k in [(0, 0, 0), (0, 3, 5), (7, 7, 7)]:
        sectors = {4 * index(block, 32 * warp + lane, k) // SECTOR for lane in WARP}
        assert len(sectors) == SECTORS[side]


@pytest.mark.parametrize("side", SECTORS)
def test_a_run_is_a_sector_and_seven_loads_are_56_kb_of_an_sm(side):
    run = constants(side)["RUN"]
    assert 4 * run == SECTOR  # so all runs under way are 64 KB of an SM's L1, and stay in it
    assert 2048 * 4 * (run - 1) == 56 << 10
    (kernel,) = kernels_of(CHAPTER / side)
    accesses = [text.split()[0][:3] for text in kernel.instructions if text.startswith(("LDG", "STG"))]
    assert accesses[: run + 1] == ["LDG"] * (run - 1) + ["STG"] * 2


def test_the_sides_differ_in_nothing_but_the_two_indices():
    def code(side):
        return re.sub(r"int (first|i) = [^;]+;", r"int \1;", re.sub(r"//.*", "", text_of(side)))

    assert code("baseline_copy.cu").split() == code("optimized_copy.cu").split()
