"""The transposes: their shared memory has no conflicts, their swizzles are bijections, and on a GPU every element is where it belongs."""

import re

import pytest
import torch

from common.python.build.nvcc import architectures_for, build
from common.python.child.sides.cuda import CudaSide
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from common.python.session.session import BUILD_CACHE
from tests.ch07.sides import CHAPTER, WARP, constants, text_of, wavefronts
from tests.support.cuda_sides import kernels_of

VECTORIZED = "optimized_transpose_vectorized.cu"
LARGE = "shared_large_tile.cuh"
STEPS = ["optimized_transpose_vectorized_large_tiles.cu", "optimized_transpose_vectorized_down_columns.cu"]
SIDES = ["baseline_transpose.cu", "optimized_transpose.cu", "optimized_transpose_swizzled.cu", *STEPS, VECTORIZED]
WORKLOAD = load_workload(CHAPTER / "workload_transpose.py")


def inputs(shape, device="cpu"):
    """Floats that all differ, also beyond 2^24 of them: each has its number for bits, and below 255 * 2^23 none of these is a NaN."""
    numbers = torch.arange(shape["rows"] * shape["cols"], dtype=torch.int32, device=device)
    return {"x": numbers.view(torch.float32).reshape(shape["rows"], shape["cols"])}


def test_baseline_and_padded_side_are_launched_alike():
    def shape(side):
        return constants(side), re.findall(r"dim3 grid.*|transpose<<<.*", text_of(side))

    assert shape("baseline_transpose.cu") == shape("optimized_transpose.cu")


def test_a_padded_column_is_conflict_free_and_an_unpadded_one_goes_32_times():
    tile = constants("optimized_transpose.cu")["TILE"]
    (expression,) = re.findall(r"float tile\[TILE\]\[([^\]]+)\]", text_of("optimized_transpose.cu"))
    width = eval(expression, {"TILE": tile})
    for i in range(tile):
        assert wavefronts([4 * (i * width + lane) for lane in WARP], 4) == 1
        assert wavefronts([4 * (lane * width + i) for lane in WARP], 4) == 1
    assert wavefronts([4 * (lane * tile) for lane in WARP], 4) == 32


def test_an_xor_makes_rows_and_columns_conflict_free_without_padding():
    side = "optimized_transpose_swizzled.cu"
    tile = constants(side)["TILE"]
    assert "tile[TILE][TILE]" in text_of(side)
    stored = re.search(r"tile\[threadIdx.y \+ pass\]\[([^\]]+)\] =", text_of(side))[1]
    loaded = re.search(r"= tile\[threadIdx.x\]\[([^;]+)\];", text_of(side))[1]

    def column(expression, lane, row):
        return eval(expression.replace("threadIdx.x", "lane").replace("threadIdx.y + pass", "row"), {"lane": lane, "row": row})

    for row in range(tile):
        assert wavefronts([4 * (row * tile + column(stored, lane, row)) for lane in WARP], 4) == 1
        assert wavefronts([4 * (lane * tile + column(loaded, lane, row)) for lane in WARP], 4) == 1
        # What lane `row` put into row `lane` is what lane `lane` takes for column `row`.
        assert all(column(stored, row, lane) == column(loaded, lane, row) for lane in WARP)


def test_blocks_of_the_vectorized_side_and_of_the_step_before_start_down_a_column_of_x():
    for side, first in (
        (VECTORIZED, "r0 = blockIdx.x * TILE, c0 = blockIdx.y * TILE"),
        (STEPS[1], "blockIdx.x * TILE, blockIdx.y * TILE)"),
    ):
        assert "dim3 grid(ceil_div(rows, TILE), ceil_div(cols, TILE));" in text_of(side)
        assert first in text_of(side)


def test_the_steps_of_large_tiles_differ_in_the_order_of_their_blocks_only():
    larger, down = (re.sub(r"//.*", "", text_of(side)) for side in STEPS)
    swapped = larger.replace("blockIdx.y * TILE, blockIdx.x * TILE", "blockIdx.x * TILE, blockIdx.y * TILE")
    assert swapped.replace("grid(ceil_div(cols, TILE), ceil_div(rows, TILE))", "grid(ceil_div(rows, TILE), ceil_div(cols, TILE))") == down


def test_a_large_tile_is_the_vectorized_one_in_4_byte_accesses_without_conflicts():
    large, vectorized = (constants(side) for side in (LARGE, VECTORIZED))
    assert (large["TILE"], large["THREADS"]) == (vectorized["TILE"], vectorized["THREADS"])
    (expression,) = re.findall(r"float tile\[TILE\]\[([^\]]+)\]", text_of(LARGE))
    width = eval(expression, {}, large)
    for i in range(large["TILE"]):
        assert wavefronts([4 * (i * width + lane) for lane in WARP], 4) == 1
        assert wavefronts([4 * (lane * width + i) for lane in WARP], 4) == 1


def test_a_thread_of_a_large_tile_has_16_loads_in_flight_before_it_stores_one():
    for side in STEPS:
        (kernel,) = kernels_of(CHAPTER / side)
        accesses = [name[:3] for text in kernel.instructions for name in text.split()[:2] if name.startswith(("LDG", "STS"))]
        assert accesses == ["LDG"] * 16 + ["STS"] * 16


class Vectorized:
    """The index arithmetic of the vectorized side: its constants and its `slot` are read from the source, the loops are restated."""

    def __init__(self):
        self.tile, self.groups, self.threads, self.step = constants(VECTORIZED).values()
        (expression,) = re.findall(r"int slot\(int column, int group\) \{ return ([^;]+); \}", text_of(VECTORIZED))
        self.expression = compile(expression.replace("/", "//"), "slot", "eval")

    def slot(self, column, group):
        return eval(self.expression, {"GROUPS": self.groups, "column": column, "group": group})

    def warps(self):
        for first in range(0, self.threads, 32):
            yield [(thread % self.groups, thread // self.groups) for thread in range(first, first + 32)]

    def stores(self, slot):
        """Byte addresses of every STS request: a warp, a pass, one of the four columns of a 4 x 4 block."""
        for warp in self.warps():
            for done in range(0, self.groups, self.step):
                for i in range(4):
                    yield [16 * slot(4 * lane + i, first + done) for lane, first in warp]

    def loads(self, slot):
        """Byte addresses of every LDS request: a warp, a pass."""
        for warp in self.warps():
            for done in range(0, self.tile, self.step):
                yield [16 * slot(first + done, lane) for lane, first in warp]


def test_the_swizzle_gives_every_group_a_slot_that_is_written_and_read_once():
    vectorized = Vectorized()
    slots = list(range(vectorized.tile * vectorized.groups))
    assert sorted(vectorized.slot(column, group) for column in range(vectorized.tile) for group in range(vectorized.groups)) == slots
    for requests in (vectorized.stores(vectorized.slot), vectorized.loads(vectorized.slot)):
        assert sorted(address // 16 for request in requests for address in request) == slots


def test_the_swizzle_needs_the_least_wavefronts_that_512_bytes_can():
    vectorized = Vectorized()
    assert {wavefronts(request, 16) for request in vectorized.stores(vectorized.slot)} == {4}
    assert {wavefronts(request, 16) for request in vectorized.loads(vectorized.slot)} == {4}


def test_no_padding_does_what_the_swizzle_does():
    vectorized = Vectorized()
    worst = {
        width: max(wavefronts(request, 16) for request in vectorized.stores(lambda c, g, w=width: c * w + g)) for width in range(16, 33)
    }
    assert worst[16] == 32
    assert min(worst.values()) == 16


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("side", SIDES)
def test_a_side_transposes_every_shape(side):
    path = CHAPTER / side
    built = build(path, architectures_for((), torch.cuda.get_device_capability()), cache=BUILD_CACHE, root=CHAPTER.parent)
    cuda = CudaSide(path, built.library, WORKLOAD, read_directives(path))
    for shape in (*WORKLOAD.check_at, WORKLOAD.time_at):
        values = inputs(shape, "cuda")
        step = cuda.prepare(values, shape)
        cuda.workspace()[0].fill_(torch.nan)
        assert torch.equal(step()[0], values["x"].T)
