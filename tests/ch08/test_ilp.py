"""ch08:ilp: the compiler's own schedule has the cycles expected, no chain goes unused, and the power in double is worth its cycles."""

import re
import subprocess
from dataclasses import dataclass

import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.machine.description import find_tool
from common.python.pairs.directives import read_directives
from tests.cuda_sides import built, constants_of, skip_without_tools, values_at
from tests.teeth import ROOT, accepts, assert_teeth

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


def loop_of(side, architecture, folder):
    """The shortest loop with a hundred FMAs or more."""
    library = built(CHAPTER / side, folder, architecture).library
    listing = subprocess.run([find_tool("cuobjdump"), "-sass", library], capture_output=True, text=True, check=True).stdout
    code = [(int(address, 16), text, int(upper, 16)) for address, text, upper in LINE.findall(listing)]
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
def loops(tmp_path_factory):
    skip_without_tools()
    return [loop_of(side, "90a", tmp_path_factory.mktemp("built")) for side in SIDES]


def test_both_loops_take_32_taps_in_as_many_instructions(loops):
    assert [(loop.fmas, loop.loads) for loop in loops] == [(4 * 32, 32 // 4)] * 2
    assert loops[0].instructions == loops[1].instructions


def test_the_schedule_has_the_cycles_that_the_ratio_is_expected_from(loops):
    chain, issued = (loop.cycles for loop in loops)
    assert chain >= 32 * 8
    assert issued <= 1.1 * loops[1].instructions
    ratio, first, second, wait = re.search(
        r"^([\d.]+)x, .* 32 taps in (\d+) cycles.* or in (\d+); .* (\d+) for", read_directives(CHAPTER / SIDES[1]).expects
    ).groups()
    assert (int(first), int(second)) == pytest.approx((chain, issued), rel=0.02)
    assert float(ratio) == pytest.approx((int(first) + int(wait)) / (int(second) + int(wait)), abs=0.05)


def test_the_timed_points_are_a_warp_a_scheduler():
    warps, schedulers = WORKLOAD.time_at["points"] // 32, 132 * 4
    assert all(f"{warps} warps: an H200 has {schedulers} schedulers" in text_of(side) for side in SIDES)
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


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[3], reduced=("h", 0))
