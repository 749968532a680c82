"""The lower rungs of chapter 10's product: on the CPU right, wrong without any one of their waits, and with the loops that they want."""

import ctypes
import functools
import re
import shutil

import pytest

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from common.python.session.session import BUILD_CACHE
from tests.ch07.sides import wavefronts
from tests.ch10 import emulated
from tests.ch10.emulated import CHAPTER, assert_right_however_late, inputs_of, is_right, skip_without_compiler
from tests.emulation import emulate
from tests.support.cuda_sides import constants_of, listing_of
from tests.support.teeth import ROOT

pytestmark = pytest.mark.slow

PAIRS = ["double_buffered_pipeline", "pipeline_3stage", "tma_2d_pipeline"]
WORKLOADS = {pair: CHAPTER / f"workload_{pair}.py" for pair in PAIRS}
WORKLOAD = load_workload(WORKLOADS[PAIRS[0]])
ONE, TWO, THREE = "baseline_double_buffered_pipeline.cu", "optimized_double_buffered_pipeline.cu", "optimized_pipeline_3stage.cu"
TMA = "optimized_tma_2d_pipeline.cu"
SHARED, REGISTERS = "optimized_matmul_shared_tile.cu", "optimized_matmul_register_tile.cu"
ROUNDS = {"m": 130, "n": 264, "k": 272}  # two tiles down and two across, of five steps
EVEN = {"m": 130, "n": 136, "k": 328}  # of six: of three stages and of two, one shape's last copies go where sums are stored
TMA_ROUNDS = {"m": 100, "n": 264, "k": 392}  # two tiles of seven steps: the last step's tiles lie where sums are stored
SHAPES = [WORKLOAD.check_at[0], WORKLOAD.check_at[2], ROUNDS]


def text_of(side):
    return (CHAPTER / side).read_text()


# A tile's sums are stored where copies land, so its copies are waited for first; here they land at the latest once the tile is stored.
LATEST = ("    sums.store(stages, x, row, column);", "    sums.store(stages, x, row, column);\n    __pipeline_wait_prior(0);")
WAIT = re.compile(r"^( +)((?:__syncthreads|__pipeline_wait_prior|__pipeline_commit)\(.*?\);)", re.MULTILINE)


def waits(side):
    """The lines of a side that wait, or say for what."""
    lines = text_of(side).splitlines()
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if WAIT.match(line)]


WAITS = [(side, *wait) for side in (ONE, TWO, THREE) for wait in waits(side)]


class Emulated:
    """A side with a stand-in for its tensor cores, which may leave out a line that waits."""

    def __init__(self, side, folder):
        for header in CHAPTER.glob("shared_*.cuh"):
            shutil.copy(header, folder)
        stand_in(folder)
        text = text_of(side)
        for number, _ in reversed(waits(side)):
            lines = text.splitlines(keepends=True)
            lines[number - 1] = WAIT.sub(rf"\1if (skipped != {number}) \2", lines[number - 1])
            text = "".join(lines)
        self.path = folder / side
        self.path.write_text(text.replace("__global__", 'extern "C" int skipped = 0; __global__').replace(*LATEST))
        self._library = ctypes.CDLL(str(emulate.build(self.path, cache=BUILD_CACHE)))

    def check(self, shapes, skipped=0):
        self._library.forget()
        ctypes.c_int.in_dll(self._library, "skipped").value = skipped
        assert emulate.check_side(WORKLOADS[PAIRS[0]], self.path, shapes, cache=BUILD_CACHE) == []


def stand_in(folder):
    (folder / "ch09").mkdir()
    shutil.copy(ROOT / "tests/ch10/mma_standin.cuh", folder / "ch09" / "shared_mma.cuh")


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    skip_without_compiler()
    return {side: Emulated(side, tmp_path_factory.mktemp("side")) for side in (ONE, TWO, THREE)}


@pytest.mark.parametrize("side", [ONE, TWO, THREE])
def test_a_side_is_right_with_fragments_as_ptx_describes_them(sides, side):
    sides[side].check(SHAPES)


def test_all_waits_were_found():
    assert [sum(wait[0] == side for wait in WAITS) for side in (ONE, TWO, THREE)] == [3, 6, 8]


@pytest.mark.parametrize(("side", "line", "text"), WAITS)
def test_no_wait_can_be_left_out(sides, side, line, text):
    with pytest.raises(AssertionError):
        sides[side].check([ROUNDS, EVEN], skipped=line)


@pytest.fixture(scope="module")
def tma(tmp_path_factory):
    return tma_side(tmp_path_factory.mktemp("tma"), text_of(TMA))


def tma_side(folder, text):
    skip_without_compiler()
    home = folder / "home"
    home.mkdir()
    for header in CHAPTER.glob("shared_*.cuh"):
        shutil.copy(header, home)
    (home / TMA).write_text(text)
    stand_in(folder)
    return emulated.build(TMA, folder, home)


def right(c, values):
    return is_right(WORKLOAD, c, values)


def ever_wrong(side, skipped=""):
    """Whether the side's answer is wrong, or no answer, in some order of events."""
    values = inputs_of(WORKLOAD, TMA_ROUNDS)
    for laziness in ("late", "by chance", "at once"):
        for seed in range(6):
            try:
                if not right(side.run(values, TMA_ROUNDS, seed=seed, laziness=laziness, skipped=skipped), values):
                    return True
            except RuntimeError:
                return True
    return False


@pytest.mark.parametrize("shape", [*SHAPES, TMA_ROUNDS], ids=str)
def test_the_tma_side_is_right_however_late_its_copies_are(tma, shape):
    assert_right_however_late(tma, WORKLOAD, shape)


TMA_WAITS = [
    (number, line.strip()) for number, line in enumerate(text_of(TMA).splitlines(), 1) if re.search("barrier_wait|__syncthr", line)
]


def test_all_waits_of_the_tma_side_were_found():
    assert len(TMA_WAITS) == 5


@pytest.mark.parametrize(("line", "text"), TMA_WAITS)
def test_no_wait_of_the_tma_side_can_be_left_out(tma, line, text):
    assert ever_wrong(tma, f"{TMA}:{line}"), text


def test_a_lane_may_tell_for_its_warp_only_once_the_warp_has_read(tmp_path):
    before = "        __syncwarp();\n        if (threadIdx.x % 32 == 0) barrier_arrive"
    assert before in text_of(TMA)
    assert ever_wrong(tma_side(tmp_path, text_of(TMA).replace(before, before.split("\n")[1])))


def test_the_pairs_are_steps_of_one_work():
    for pair, before in zip(PAIRS[1:], (TWO, THREE), strict=True):
        other = load_workload(WORKLOADS[pair])
        assert read_directives(WORKLOADS[pair]).baseline == f"ch10/{before}"
        assert (other.time_at, other.tolerance("optimized")) == (WORKLOAD.time_at, WORKLOAD.tolerance("optimized"))


@functools.cache
def loop_of(side):
    """The names of the instructions of the loop that multiplies, from a barrier if it has one."""
    code = re.findall(r"/\*([0-9a-f]{4,})\*/ +(?:@!?U?P\w+ )?([^;]+?) *;", listing_of(CHAPTER / side))
    number = {address: i for i, (address, _) in enumerate(code)}
    names = [text.split()[0] for _, text in code]
    for last, (_, text) in enumerate(code):
        target = re.search(r"BRA.* 0x([0-9a-f]+)", text)
        first = number.get(target[1].zfill(4), last) if target else last
        if first < last and sum(name.startswith(("HMMA", "FFMA")) for name in names[first:last]) >= 64:
            return names[first : last + 1]
    pytest.fail(f"{side}: no loop that multiplies")


def count(names, start):
    return sum(name.startswith(start) for name in names)


def longest_without_products(names):
    return max(len(run) for run in re.split("H+", "".join("H" if name.startswith("HMMA") else "." for name in names)))


def test_three_stages_read_and_copy_under_their_products():
    assert longest_without_products(loop_of(TWO)) > 80
    assert longest_without_products(loop_of(THREE)) < 20


@pytest.mark.parametrize("side", [ONE, TWO, THREE, TMA])
def test_a_step_is_128_products_and_32_reads_a_warp(side):
    loop = loop_of(side)
    assert (count(loop, "HMMA"), count(loop, "LDSM")) == (128, 32)


def test_a_warp_meets_no_bank_conflict_in_swizzled_tiles():
    def swizzled(row, chunk):
        return row * 128 + (chunk ^ row % 8) * 16

    lanes = range(32)
    for part in range(4):
        assert wavefronts([swizzled(lane % 16, 2 * part + lane // 16) for lane in lanes], 16) == 4
        assert wavefronts([swizzled(lane // 16 * 8 + lane % 8, 2 * part + lane // 8 % 2) for lane in lanes], 16) == 4
    assert wavefronts([lane % 16 * 128 + lane // 16 * 16 for lane in lanes], 16) > 4
    assert wavefronts([swizzled(lane // 8, lane % 8) for lane in lanes], 16) == 4  # copies, and the stores of c
    assert wavefronts([swizzled(lane // 4, 3) + lane % 4 * 4 for lane in lanes], 4) == 1  # sums into a warp's panel


def test_loops_of_cuda_cores_multiply_convert_and_load_as_often_as_their_tiles_want():
    loop = loop_of(SHARED)
    conversions = sum(count(loop, name) for name in ("IMAD.U32", "SHF.L.U32", "LOP3", "PRMT"))
    assert count(loop, "FFMA") == 64
    assert conversions == pytest.approx(2 * 64, abs=8)
    depth = constants_of(CHAPTER / REGISTERS)["DEPTH"]
    loop = loop_of(REGISTERS)
    assert (count(loop, "FFMA"), count(loop, "LDS.128")) == (64 * depth, 4 * depth)


def test_rows_of_a_padded_tile_lie_in_different_banks():
    values = constants_of(CHAPTER / SHARED)
    row = 2 * (values["DEPTH"] + values["PAD"])
    assert wavefronts([row * (lane % values["TILE"]) for lane in range(32)], 16) == 4
    assert wavefronts([2 * values["DEPTH"] * (lane % values["TILE"]) for lane in range(32)], 16) > 4
