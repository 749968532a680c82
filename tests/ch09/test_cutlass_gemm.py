"""ch09:cutlass_gemm: what CUTLASS tells the TMA and the GPU is the product of this workload, and its machine code is what is claimed."""

import importlib.metadata
import re
import subprocess

import pytest

from common.python.build.nvcc import build, find_nvcc
from common.python.build.sass import read_code
from common.python.child.sides.loader import load_workload
from common.python.pairs.claims import read_claims
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover
from common.python.prove.proofs import Seen, prove
from tests.ch09.bf16_tiles import TILES, l1_cycles
from tests.ch09.sides import CHAPTER, arguments, constants
from tests.ch10 import model
from tests.cuda_sides import built, skip_without_tools
from tests.teeth import ROOT, assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_cutlass_gemm.py")
BASELINE, OPTIMIZED, DEMO = CHAPTER / "optimized_tensor_core.cu", CHAPTER / "optimized_cutlass_gemm.cu", "cutlass_gemm_example"
SHAPES = [*WORKLOAD.check_at, *WORKLOAD.timed_shapes.values()]
TILE_M, TILE_N, TILE_K, CLUSTER, WARPGROUPS = 128, 256, 64, 2, 2
MULTIPROCESSORS = model.SMS
A, B, C = (gib << 30 for gib in (1, 2, 3))  # where recorded_launch.cpp says that the matrices lie
FP8_BITS = 3  # of mantissa of e4m3, the precision below
# A build of CUTLASS takes a core a minute.
pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The side as the harness builds it, but that it looks for the CUDA runtime in the program that loads it."""
    skip_without_tools()
    flags = [*read_directives(OPTIMIZED).nvcc, "-cudart", "none"]
    return build(OPTIMIZED, ["90a"], flags=flags, cache=tmp_path_factory.mktemp("optimized"), root=ROOT)


# --- what the host code does


@pytest.fixture(scope="module")
def launch(library, tmp_path_factory):
    """A function from m, n and k to the tensor maps and the launch that the side makes of them."""
    program = tmp_path_factory.mktemp("recorded") / "launch"
    source = ROOT / "tests/ch09/recorded_launch.cpp"
    subprocess.run([find_nvcc(), "-std=c++17", "-cudart", "none", "-Xcompiler", "-rdynamic", source, "-o", program], check=True)

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


def test_the_claims_hold_and_separate_it_from_the_baseline(library, tmp_path):
    libraries = {"baseline": built(BASELINE, tmp_path), "optimized": library}
    evidence = {side: {"90a": Seen(kernels=read_code(made.library, made.log), hidden="nobody ran it")} for side, made in libraries.items()}
    claims = read_claims(OPTIMIZED, read_directives(OPTIMIZED))
    assert {claim.text: prove(claim, "optimized", evidence).state for claim in claims} == {claim.text: "proven" for claim in claims}
    assert sum(claim.separates for claim in claims) == 5


def test_the_products_of_a_kernel_that_can_be_named_stay_in_flight(library):
    assert "-DNDEBUG" in read_directives(OPTIMIZED).nvcc  # else ptxas says of them what is looked for here
    assert "serialized" not in library.log
    (kernel,) = read_code(library.library, library.log)
    assert kernel.name == "void cutlass::device_kernel<Multiply>(Multiply::Params)"
    assert sum("HGMMA.64x256x16.F32.BF16" in text for text in kernel.instructions) == 2 * TILE_K // 16  # a first step, and the others


# --- what is expected


def test_the_ratio_expected_is_that_of_the_cycles():
    """Prose against formula."""
    tiles = constants(TILES)
    tile, depth = tiles["TILE"], tiles["DEPTH"]
    products, rate = tile * tile * depth, model.WGMMA
    expects = read_directives(OPTIMIZED).expects
    ratio, *numbers = re.search(
        r"^([\d.]+)x, (\d+) x (\d+) x (\d+) products take wgmma (\d+) cycles, and the baseline (\d+) in", expects
    ).groups()
    assert list(map(int, numbers)) == [tile, tile, depth, products // rate, l1_cycles()]
    assert float(ratio) == round(l1_cycles() * rate / products, 1)


def test_the_bytes_of_a_step_are_those_that_the_comment_counts():
    """Prose against formula."""
    a, b, cycles = 2 * TILE_M * TILE_K, 2 * TILE_N * TILE_K, TILE_M * TILE_N * TILE_K // model.WGMMA
    comment = " ".join(re.findall(r"^// (.*)", OPTIMIZED.read_text(), re.MULTILINE))
    assert f"{(a + b) >> 10} KB for {cycles} cycles" in comment
    assert f"the same {b >> 10} KB of b" in comment
    assert f"{(a + b // CLUSTER) // cycles} bytes a cycle are left" in comment
    assert f"has {round(9.84e12 / model.SMS / 1.5e9)} bytes a cycle for an SM (9.84 TB/s)" in comment


# --- the workload


@pytest.mark.parametrize("side", [BASELINE, OPTIMIZED], ids=lambda side: side.name)
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side.name) == ["a", "b", "c", "m", "n", "k", "stream"]


def test_the_baseline_is_the_kernel_that_won_in_tensor_core():
    (pair,) = [pair for pair in discover(ROOT).pairs if pair.target == "ch09:cutlass_gemm"]
    assert pair.sides == {"baseline": BASELINE, "optimized": OPTIMIZED, "library": CHAPTER / "library_cutlass_gemm.py"}


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"m": 32, "n": 32, "k": 8192}, reduced=("a", 1), bits=FP8_BITS)


# --- the demo


def test_the_demo_builds_with_its_own_lines_and_checks_its_calls(tmp_path):
    skip_without_tools()
    headers, compiler, run = (line.removeprefix("// ") for line in (CHAPTER / f"{DEMO}.cu").read_text().splitlines()[1:4])
    assert headers == "src=$(echo .venv/lib/python3*/site-packages/cutlass_library/source) && mkdir -p build"
    source = importlib.metadata.distribution("nvidia-cutlass").locate_file("cutlass_library/source")
    lines = [f"src={source}", compiler.replace("build/", f"{tmp_path}/")]
    subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=ROOT, check=True, capture_output=True)
    ended = subprocess.run([run.replace("build", str(tmp_path))], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 or any(reason in ended.stderr for reason in ("CUDA driver", "no CUDA-capable device"))
