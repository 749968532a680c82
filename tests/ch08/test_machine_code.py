"""Chapter 8: what the compiler made of spills, loads, registers and the order of loads, for an H200."""

import re

import pytest

from common.python.child.sides.loader import load_workload
from tests.support.cuda_sides import kernels_of, listing_of
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch08"
LINE = re.compile(r"/\*([0-9a-f]{4,})\*/ +([^;]+?) *;")
BRANCH = re.compile(r"\bBRA\S* (?:\S+, )?0x([0-9a-f]+)$")


def listing(side, pair):
    """Addresses and instructions, with their predicates."""
    return [(int(address, 16), instruction) for address, instruction in LINE.findall(listing_of(CHAPTER / f"{side}_{pair}.cu"))]


def test_only_the_optimized_threshold_loads_the_gain_before_it_knows_the_value():
    for side, order in (("baseline", ["LDG", "FSETP", "@P0 LDG"]), ("optimized", ["LDG", "LDG", "FSETP"])):
        found = [re.search(r"(@!?P\d )?(LDG|FSETP)", text) for _, text in listing(side, "threshold")]
        assert [match[0] for match in found if match] == order


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_a_warp_that_decodes_has_one_request_for_codes_in_flight(side):
    text = [text for _, text in listing(side, "occupancy")]
    decoding = text[max(i for i, instruction in enumerate(text) if "BAR.SYNC" in instruction) :]
    assert sum("LDG" in instruction for instruction in decoding) == 1


def test_the_sum_asks_for_its_next_tile_before_it_has_added_the_last():
    found = [re.search(r"LDG\.E\.128|FADD", text) for _, text in listing("optimized", "extreme_ilp")]
    order = "".join(match[0][0] for match in found if match)
    assert re.match(r"L{8}F{0,8}L{8}F{24,32}L{8}F", order)  # 32 additions of each tile: at most a quarter before the next tile's loads


def shortest_way_round(code, loads):
    """How many instructions the shortest way round any loop has on which `loads` of them load from global memory."""
    at = {address: i for i, (address, _) in enumerate(code)}
    jumps = {address: int(match[1], 16) for address, text in code if (match := BRANCH.search(text))}

    def ways(i, left, length, head):
        while i < len(code) and left >= 0:
            address, text = code[i]
            length, left = length + 1, left - ("LDG" in text)
            if address in jumps:
                if jumps[address] == head and not left:
                    yield length
                elif jumps[address] > address:
                    yield from ways(at[jumps[address]], left, length, head)
                if not text.startswith("@"):
                    return
            i += 1

    heads = {target for address, target in jumps.items() if target < address}
    return min(length for head in heads for length in ways(at[head], loads, 0, head))


def test_a_center_of_8_dimensions_takes_75_instructions_in_a_loop_and_28_unrolled():
    known, dims = load_workload(CHAPTER / "workload_loop_unrolling.py"), 8
    assert known.time_at["dims"] == dims
    baseline = shortest_way_round(listing("baseline", "loop_unrolling"), 2 * dims)
    code = listing("optimized", "loop_unrolling")
    start = max(i for i, (address, _) in enumerate(code) if address == 0)  # kernels of 3 and of 8 dimensions
    optimized = shortest_way_round(code[start:], 2 * dims) / 2  # two centers at a time
    assert (baseline, optimized) == (75, 28)


def main_loop(code):
    """The shortest loop with 500 FMAs or more."""
    loops = []
    for end, text in code:
        target = BRANCH.search(text)
        if target and int(target[1], 16) < end:
            body = [line for address, line in code if int(target[1], 16) <= address <= end]
            if sum("FFMA" in line for line in body) >= 500:
                loops.append(body)
    return min(loops, key=len)


def test_a_smaller_tile_spills_nothing_and_the_large_one_a_thousand_times():
    first, second = (main_loop(listing(side, "register_pressure")) for side in ("baseline", "optimized"))

    def count(body, *names):
        return sum(any(re.search(rf"\b{name}\b", line) for name in names) for line in body)

    assert (count(first, "FFMA"), count(first, "LDS")) == (2048, 64)
    assert (count(second, "FFMA"), count(second, "LDL", "STL")) == (2048 / 4, 0)
    assert count(first, "LDL", "STL") == pytest.approx(1148, rel=0.1)
    assert len(second) == pytest.approx(615, rel=0.02)


@pytest.mark.parametrize(("side", "registers"), [("baseline", 42), ("optimized", 32)])
def test_the_bounds_save_ten_registers_and_spill_none(side, registers):
    (kernel,) = kernels_of(CHAPTER / f"{side}_launch_bounds.cu")
    assert (kernel.registers, kernel.spill_bytes) == (registers, 0)
