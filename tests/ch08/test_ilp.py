"""ch08:ilp: the compiler's own schedule hides the waits of a chain, no chain goes unused, and the power in double is worth its cycles."""

import re
from dataclasses import dataclass

import pytest
import torch

from common.python.child.sides.loader import load_workload
from tests.support.cuda_sides import constants_of, listing_of, values_at
from tests.support.teeth import ROOT, accepts

CHAPTER = ROOT / "ch08"
WORKLOAD = load_workload(CHAPTER / "workload_ilp.py")
SIDES = ("baseline_ilp.cu", "optimized_ilp.cu")
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/ +([^;]+?) *;.*?\n.*?/\* (0x[0-9a-f]{16}) \*/")


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    return constants_of(CHAPTER / side)


@dataclass
class Loop:
    """The loop over the taps in machine code; `cycles` are those that the compiler has one warp take from issue to issue."""

    fmas: int
    loads: int
    instructions: int
    cycles: int


def loop_of(side):
    """The shortest loop with a hundred FMAs or more."""
    code = [(int(address, 16), text, int(upper, 16)) for address, text, upper in LINE.findall(listing_of(CHAPTER / side))]
    loops = []
    for end, text, _ in code:
        target = re.search(r"\bBRA\S* (?:\S+, )?0x([0-9a-f]+)$", text)
        if target and int(target[1], 16) < end:
            body = [line for line in code if int(target[1], 16) <= line[0] <= end]
            # Bits 41 to 44 of an instruction's upper word are how many cycles its warp waits before it issues the next.
            cycles = sum(upper >> 41 & 15 for _, _, upper in body)
            fmas, loads = (sum(name in text for _, text, _ in body) for name in ("FFMA", "LDS.128"))
            loops.append(Loop(fmas, loads, len(body), cycles))
    return min((loop for loop in loops if loop.fmas >= 100), key=lambda loop: loop.instructions)


@pytest.fixture(scope="module")
def loops():
    return [loop_of(side) for side in SIDES]


def test_both_loops_take_32_taps_in_as_many_instructions(loops):
    assert [(loop.fmas, loop.loads) for loop in loops] == [(4 * 32, 32 // 4)] * 2
    assert loops[0].instructions == loops[1].instructions


def test_a_chain_waits_for_each_fma_and_chains_side_by_side_for_none(loops):
    chain, issued = (loop.cycles for loop in loops)
    assert chain >= 32 * 8
    assert issued <= 1.1 * loops[1].instructions


def test_the_timed_points_are_a_warp_a_scheduler():
    warps, schedulers = WORKLOAD.time_at["points"] // 32, 132 * 4
    assert 0.95 * schedulers < warps <= schedulers


def test_tile_and_launch_are_the_same():
    assert constants(SIDES[0]).items() <= constants(SIDES[1]).items()
    assert len({re.search(r"^LAUNCH.*", text_of(side), re.DOTALL | re.MULTILINE)[0] for side in SIDES}) == 1


SHAPE = {"points": 64, "taps": 4096}


def chained(values, power, without=None):
    """Responses as the optimized side puts them together, each chain exact, with z to the LENGTH by `power`; one chain may be missing."""
    h, z = values["h"].double(), torch.view_as_complex(values["z"].double())
    size, length, chains = (constants(SIDES[1])[name] for name in ("TILE", "LENGTH", "CHAINS"))
    powers, jump = z[:, None] ** torch.arange(length), torch.view_as_complex(power(values["z"], length).double())
    y = torch.zeros_like(z)
    for tile in h.reshape(-1, size).flip(0):
        for j in reversed(range(chains)):
            part = 0 if j == without else powers @ tile[j * length : (j + 1) * length].to(powers.dtype)
            y = y * jump + part
    return torch.view_as_real(y)


def squared_in(dtype):
    def power(z, length):
        x, y = z.to(dtype).unbind(1)
        for _ in range(length.bit_length() - 1):
            x, y = x * x - y * y, 2 * (x * y)
        return torch.stack((x, y), dim=1).float()

    return power


def is_right(answer, values):
    expected = WORKLOAD.reference(values["h"].double(), values["z"].double(), SHAPE["taps"])
    return accepts(WORKLOAD.tolerance("optimized"), [answer], [expected])


def test_the_power_is_right_in_double_and_would_be_wrong_in_float():
    values = values_at(WORKLOAD, SHAPE)
    assert is_right(chained(values, squared_in(torch.float64)), values)
    assert not is_right(chained(values, squared_in(torch.float32)), values)


@pytest.mark.parametrize("chain", range(4))
def test_an_answer_without_one_of_the_chains_is_wrong(chain):
    values = values_at(WORKLOAD, SHAPE)
    assert not is_right(chained(values, squared_in(torch.float64), without=chain), values)
