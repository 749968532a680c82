"""Chapter 8: the sides differ in their idea alone, and blocks, bytes and operations are as many as their constants make them."""

import difflib
import re

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.directives import read_directives
from common.python.pairs.workload import call_by_name
from tests.support import cuda_sides
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch08"
REGISTERS, SHARED, RESERVED, MOST_WARPS = 65536, 228 << 10, 1 << 10, 64  # of an SM; shared memory that CUDA keeps of every block
POINTS = "const float2* __restrict__ x, float2* __restrict__ y"


def workload_of(pair):
    return load_workload(CHAPTER / f"workload_{pair}.py")


def text_of(side, pair):
    return (CHAPTER / f"{side}_{pair}.cu").read_text()


def values_at(pair, shape):
    return cuda_sides.values_at(workload_of(pair), shape)


def constants(side, pair):
    return cuda_sides.constants_of(CHAPTER / f"{side}_{pair}.cu")


def changed(pair):
    """The lines of code that the optimized side has and the baseline has not."""
    before, after = (re.sub(r" *//.*", "", text_of(side, pair)).splitlines() for side in ("baseline", "optimized"))
    return [line[2:].strip() for line in difflib.ndiff(before, after) if line.startswith("+ ") and line[2:].strip()]


def blocks_of_an_sm(threads, registers, shared=0):
    """How many blocks fit; registers are given to warps in portions of 256."""
    warps = threads // 32
    by_registers = REGISTERS // (-(-32 * registers // 256) * 256 * warps)
    return min(by_registers, MOST_WARPS // warps, SHARED // (shared + RESERVED))


@pytest.mark.parametrize(
    ("pair", "lines"),
    [
        ("occupancy", ["constexpr int THREADS = 1024;"]),
        ("register_pressure", ["constexpr int REACH = 8;"]),
        ("launch_bounds", [f"__global__ void __launch_bounds__(THREADS, 4) fft({POINTS}) {{ transform_row(x, y); }}"]),
        (
            "threshold",
            ["float above = threshold + (value - threshold) * gain[i];", "y[i] = value > threshold ? above : value;"],
        ),
    ],
)
def test_sides_differ_in_their_idea_alone(pair, lines):
    assert changed(pair) == lines


def test_occupancy_is_two_blocks_that_share_the_shared_memory():
    for side, warps in (("baseline", 16), ("optimized", 64)):
        known = constants(side, "occupancy")
        assert blocks_of_an_sm(known["THREADS"], 32, 4 * known["SIZE"]) == 2
        assert 2 * known["THREADS"] // 32 == warps
    assert max(int(code) for code in values_at("occupancy", {"n": 100_003})["codes"]) < constants("baseline", "occupancy")["SIZE"]


def test_launch_bounds_make_room_for_four_blocks_instead_of_two():
    threads = cuda_sides.constants_of(CHAPTER / "shared_fft.cuh")["THREADS"]
    shared = 8 * (4096 + 4096 // 16)
    assert [blocks_of_an_sm(threads, registers, shared) for registers in (42, 32)] == [2, 4]


def test_a_quarter_of_the_values_is_above_the_threshold_and_nearly_every_warp_has_one():
    workload = workload_of("threshold")
    shape = {**workload.time_at, "n": 1 << 20}
    above = values_at("threshold", shape)["x"] > shape["threshold"]
    assert 0.245 < above.float().mean() < 0.255
    mixed = above.view(-1, 32).any(dim=1) & ~above.view(-1, 32).all(dim=1)
    assert mixed.float().mean() > 0.999
    sectors = above.view(-1, 8).any(dim=1).float().mean().item()
    assert sectors == pytest.approx(0.9, abs=0.005)
    assert workload.work(**shape)["dram_read"] == pytest.approx(4 * shape["n"] * (1 + sectors), rel=0.005)


def test_bytes_in_flight_are_what_the_first_lines_say():
    threads = constants("optimized", "hbm_vectorized")["THREADS"]
    assert threads == constants("baseline", "hbm_vectorized")["THREADS"]
    assert blocks_of_an_sm(threads, 32) * threads // 32 == 64
    assert (2048 * 2 * 4, 2048 * 2 * 16) == (16 << 10, 64 << 10)
    full, few = (constants(side, "extreme_ilp") for side in ("baseline", "optimized"))
    assert (full["BLOCKS"] * full["THREADS"], few["BLOCKS"] * few["THREADS"]) == (132 * 2048, 132 * 512)
    assert (2048 * 16, 512 * 16 * few["LOADS"]) == (32 << 10, 64 << 10)


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_every_block_has_a_place_for_its_sum(side):
    (scratch,) = read_directives(CHAPTER / f"{side}_extreme_ilp.cu").scratch
    assert scratch.elements({}) == constants(side, "extreme_ilp")["BLOCKS"]


class Operations(TorchDispatchMode):
    """Counts what PyTorch would launch: everything but views."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if not any(word in str(function) for word in ("select", "slice", "view", "detach", "unbind", "expand")):
            self.names.append(str(function))
        return function(*arguments, **(options or {}))


def operations(side, pair, shape):
    step = call_by_name(import_file(CHAPTER / f"{side}_{pair}.py").prepare, {**shape, **values_at(pair, shape)}, "prepare")
    with Operations() as counted:
        step()
    return counted.names


def test_a_chain_of_512_operations_becomes_72():
    shape = workload_of("ilp_pytorch").cpu_at
    assert [len(operations(side, "ilp_pytorch", shape)) for side in ("baseline", "optimized")] == [512, 72]


def test_half_of_the_steps_exist():
    shape = {**workload_of("warp_divergence").time_at, "width": 1}
    lengths = values_at("warp_divergence", shape)["lengths"]
    assert lengths.sum() / (shape["steps"] * shape["sequences"]) == pytest.approx(0.5, abs=0.02)
    assert int(lengths.min()) == 1
    assert int(lengths.max()) == shape["steps"]


def test_only_a_part_of_a_long_row_is_a_row_of_the_optimized_softmax():
    workload = workload_of("occupancy_pytorch")
    assert workload.time_at["cols"] % 4096 == 0
    assert workload.time_at["rows"] * workload.time_at["cols"] // 4096 > 100 * 132
