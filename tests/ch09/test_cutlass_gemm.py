"""ch09:cutlass_gemm: what CUTLASS tells the TMA and the GPU is the product of this workload, and its products stay in flight."""

import importlib.metadata
import subprocess

import pytest

from common.python.build.nvcc import find_nvcc
from common.python.build.sass import read_code
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch09.sides import CHAPTER
from tests.ch10 import model
from tests.support.cuda_sides import built, compiled, skip_without_tools
from tests.support.teeth import ROOT

WORKLOAD = load_workload(CHAPTER / "workload_cutlass_gemm.py")
OPTIMIZED, DEMO = CHAPTER / "optimized_cutlass_gemm.cu", "cutlass_gemm_example"
SHAPES = [*WORKLOAD.check_at, *WORKLOAD.timed_shapes.values()]
TILE_M, TILE_N, TILE_K, CLUSTER, WARPGROUPS = 128, 256, 64, 2, 2
MULTIPROCESSORS = model.SMS
A, B, C = (gib << 30 for gib in (1, 2, 3))  # where recorded_launch.cpp says that the matrices lie
# A build of CUTLASS takes a core a minute.
pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]


@pytest.fixture(scope="module")
def library():
    """The side as the harness builds it, but that it looks for the CUDA runtime in the program that loads it."""
    return built(OPTIMIZED, flags=("-cudart", "none"))


# --- what the host code does


@pytest.fixture(scope="module")
def launch(library):
    """A function from m, n and k to the tensor maps and the launch that the side makes of them."""
    source = ROOT / "tests/ch09/recorded_launch.cpp"
    program = compiled(f"{find_nvcc()} -std=c++17 -cudart none -Xcompiler -rdynamic {source} -o {{}}", "recorded_launch", [source])

    def launched(m, n, k):
        ran = subprocess.run([program, library.library, str(m), str(n), str(k)], capture_output=True, text=True, check=False)
        words = [line.split() for line in ran.stdout.splitlines()]
        maps = {int(word[2], 16): [tuple(map(int, dim.split(":"))) for dim in word[4:]] for word in words if word[0] == "map"}
        (last,) = [word[1:] for word in words if word[0] == "launch"] or [[]]
        return ran.returncode, maps, last

    return launched


def bytes_of(dims, size):
    """The bytes of the box that a load or a store moves at a time."""
    count = size
    for _, _, box, _ in dims:
        count *= box
    return count


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_tma_is_told_where_each_element_lies(launch, shape):
    m, n, k = shape["m"], shape["n"], shape["k"]
    code, maps, _ = launch(m, n, k)
    assert code == 0
    # Elements across and, from row to row, bytes down: those of row-major (m, k), (k, n) and (m, n).
    found = {address: [(size, stride) for size, stride, _, _ in dims] for address, dims in maps.items()}
    assert found == {
        A: [(k, 0), (m, 2 * k), (1, 0)],
        B: [(n, 0), (k, 2 * n), (1, 0)],
        C: [(n, 0), (m, 4 * n), (1, 0)],
    }
    assert all(stride % 16 == 0 for dims in found.values() for _, stride in dims)
    assert all(step == 1 for dims in maps.values() for *_, step in dims)


def test_a_block_loads_its_tile_of_a_and_half_of_each_box_of_b(launch):
    _, maps, _ = launch(4096, 4096, 4096)
    assert [box for _, _, box, _ in maps[A]] == [TILE_K, TILE_M, 1]
    assert [box for _, _, box, _ in maps[B]] == [64, TILE_K // CLUSTER, 1]
    stores = TILE_M * TILE_N * 4 // bytes_of(maps[C], 4)
    assert (stores, maps[C][1][2]) == (8, TILE_M)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_launch_is_at_most_a_block_an_sm_in_clusters_of_two_on_the_stream_given(launch, shape):
    _, _, (shared, stream, grid, block, cluster) = launch(**shape)
    assert (stream, block, cluster) == ("57", f"{(1 + WARPGROUPS) * 128}:1:1", f"{CLUSTER}:1:1")
    down, across, _ = map(int, grid.split(":"))
    needed = -(-shape["m"] // TILE_M // CLUSTER) * CLUSTER * -(-shape["n"] // TILE_N)
    assert down == CLUSTER
    assert min(needed, MULTIPROCESSORS) <= down * across <= MULTIPROCESSORS
    stage = (TILE_M + TILE_N) * TILE_K * 2
    assert int(shared) // stage == 4
    assert int(shared) <= 227 << 10


def test_the_last_check_gives_blocks_more_than_one_tile():
    shape = WORKLOAD.check_at[-1]
    assert -(-shape["m"] // TILE_M) * -(-shape["n"] // TILE_N) > 2 * MULTIPROCESSORS


@pytest.mark.parametrize("shape", [(128, 12, 8), (128, 8, 12)])
def test_rows_that_the_tma_cannot_take_are_refused(launch, shape):
    assert launch(*shape) == (2, {}, [])


# --- what the machine code proves


def test_the_products_of_a_kernel_that_can_be_named_stay_in_flight(library):
    assert "-DNDEBUG" in read_directives(OPTIMIZED).nvcc  # else ptxas says of them what is looked for here
    assert "serialized" not in library.log
    (kernel,) = read_code(library.library, library.log)
    assert kernel.name == "void cutlass::device_kernel<Multiply>(Multiply::Params)"
    assert sum("HGMMA.64x256x16.F32.BF16" in text for text in kernel.instructions) == 2 * TILE_K // 16  # a first step, and the others


# --- the demo


def test_the_demo_builds_with_its_own_lines_and_checks_its_calls():
    skip_without_tools()
    headers, compiler, run = (line.removeprefix("// ") for line in (CHAPTER / f"{DEMO}.cu").read_text().splitlines()[1:4])
    assert headers == "src=$(echo .venv/lib/python3*/site-packages/cutlass_library/source) && mkdir -p build"
    source = importlib.metadata.distribution("nvidia-cutlass").locate_file("cutlass_library/source")
    assert run in compiler
    program = compiled(f"src={source}\n{compiler.replace(run, '{}')}", DEMO, [CHAPTER / f"{DEMO}.cu", *CHAPTER.glob("*.cuh"), OPTIMIZED])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 or any(reason in ended.stderr for reason in ("CUDA driver", "no CUDA-capable device"))
