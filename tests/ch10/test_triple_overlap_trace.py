"""The -DTRACE build of the triple overlap: right answers and a stamp for every step and tile, and without it no instruction more."""

import ctypes
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest

from common.python.environment import find_tool
from common.python.loader import load_workload
from tests.ch10.emulated import CHAPTER, LAZINESS, build, inputs_of
from tests.cuda_sides import built, skip_without_tools
from tests.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_wgmma_triple_overlap.py")
DEMO, SKELETON = "triple_overlap_trace.cu", "shared_triple_overlap.cuh"
SIDES = {"optimized_wgmma_triple_overlap.cu": ("90a", 192), "optimized_tmem_triple_overlap.cu": ("100a", 256)}
ASKED, LOADED, BEGUN, MULTIPLIED, DRAINED, POINTS = range(6)
BLOCKS, MOST = 2, 64
SHAPE = {"m": 300, "n": 520, "k": 200}

SHARES = """#include "shared_overlap.cuh"
extern "C" void shares(const Span* spans, const int* roles, int count, unsigned long long* time) {
    std::array<std::vector<Span>, ROLES> busy;
    for (int i = 0; i < count; i++) busy[roles[i]].push_back(spans[i]);
    const auto found = time_by_set(busy);
    for (int set = 0; set < 1 << ROLES; set++) time[set] = found[set];
}
"""


@pytest.fixture(scope="module")
def time_by_set(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("shares")
    (folder / "shares.cpp").write_text(SHARES)
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", f"-I{CHAPTER}", folder / "shares.cpp", "-o", folder / "shares.so"], check=True)
    function = ctypes.CDLL(str(folder / "shares.so")).shares

    def call(*roles):
        spans = np.array([span for role in roles for span in role], np.uint64).reshape(-1, 2)
        numbers = np.array([number for number, role in enumerate(roles) for _ in role], np.int32)
        time = np.zeros(8, np.uint64)
        function(*(array.ctypes.data_as(ctypes.c_void_p) for array in (spans, numbers)), len(spans), time.ctypes.data_as(ctypes.c_void_p))
        return time.tolist()

    return call


def test_time_is_told_apart_by_who_was_busy(time_by_set):
    assert time_by_set([], [], []) == [0] * 8
    assert time_by_set([(10, 20)], [(20, 30)], [(35, 40)]) == [5, 10, 10, 0, 5, 0, 0, 0]
    assert time_by_set([(0, 100)], [(10, 90)], [(50, 120)]) == [0, 10, 0, 40, 20, 10, 0, 40]
    assert time_by_set([(0, 6), (2, 8), (8, 9)], [(3, 3)], []) == [0, 9, 0, 0, 0, 0, 0, 0], "spans of one role count once"


def test_time_by_set_is_a_count_of_every_nanosecond(time_by_set):
    rng = np.random.default_rng(1)
    for _ in range(20):
        roles = [[(begin, begin + length) for begin, length in rng.integers(1, 40, (5, 2)).tolist()] for _ in range(3)]
        expected = [0] * 8
        spans = [span for role in roles for span in role]
        for now in range(min(begin for begin, _ in spans), max(end for _, end in spans)):
            expected[sum(any(begin <= now < end for begin, end in role) << number for number, role in enumerate(roles))] += 1
        assert time_by_set(*roles) == expected


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    sides = {}
    for side in SIDES:
        home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("side")
        for file in CHAPTER.glob("shared_*.cuh"):
            shutil.copy(file, home)
        into = '\nextern "C" void trace_into(unsigned long long* stamps, int most) { trace = {stamps, most}; }\n'
        (home / side).write_text("#define TRACE\n" + (CHAPTER / side).read_text() + into)
        sides[side] = build(side, folder, home), ctypes.CDLL(str(folder / f"{side}.so"))
    return sides


@pytest.mark.parametrize("laziness", LAZINESS)
@pytest.mark.parametrize("side", SIDES)
def test_every_step_and_tile_is_stamped_in_order_and_the_product_is_right(traced, side, laziness):
    emulated, library = traced[side]
    values = inputs_of(WORKLOAD, SHAPE)
    stamps = np.zeros((POINTS, BLOCKS, MOST), np.uint64)
    library.trace_into(stamps.ctypes.data_as(ctypes.c_void_p), MOST)
    c = emulated.run(values, SHAPE, multiprocessors=BLOCKS, laziness=laziness)
    assert accepts(WORKLOAD.tolerance("optimized"), [c], [WORKLOAD.reference(values["a"].double(), values["b"].double())])

    steps, count = -(-SHAPE["k"] // 64), -(-SHAPE["m"] // 128) * -(-SHAPE["n"] // SIDES[side][1])
    for block in range(BLOCKS):
        tiles = len(range(block, count, BLOCKS))
        at = stamps[:, block]
        assert [int((row > 0).sum()) for row in at] == [tiles * steps, tiles * steps, tiles, tiles, tiles]
        assert (at[ASKED, : tiles * steps] < at[LOADED, : tiles * steps]).all()
        assert (at[BEGUN, :tiles] < at[MULTIPLIED, :tiles]).all()
        assert (at[MULTIPLIED, :tiles] < at[DRAINED, :tiles]).all()
        assert (at[ASKED, : tiles * steps : steps] < at[BEGUN, :tiles]).all()


def code_of(side, folder, architecture):
    library = built(side, folder, architecture).library
    listing = subprocess.run([find_tool("cuobjdump"), "-sass", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing)


@pytest.mark.parametrize("side", SIDES)
def test_without_trace_the_machine_code_is_as_if_no_stamp_were_there(side, tmp_path):
    skip_without_tools()
    for file in (*CHAPTER.glob("shared_*.cuh"), CHAPTER / side):
        shutil.copy(file, tmp_path)
    lines = (tmp_path / SKELETON).read_text().replace(" + TRACED", "").splitlines()
    kept = [line for line in lines if not re.search(r"\bstamp\(|\bwatch\(|shared_trace", line)]
    assert len(lines) - len(kept) == 6
    (tmp_path / SKELETON).write_text("\n".join(kept) + "\n")
    architecture = SIDES[side][0]
    code = code_of(CHAPTER / side, tmp_path / "a", architecture)
    assert len(code) > 500
    assert code == code_of(tmp_path / side, tmp_path / "b", architecture)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("side", SIDES)
def test_the_demo_builds_with_its_own_line_and_checks_its_calls(side, tmp_path):
    first, blackwell = (CHAPTER / DEMO).read_text().splitlines()[1:3]
    folder, command, run = first.removeprefix("// ").split(" && ")
    assert folder == "mkdir -p build"
    words = [str(tmp_path / "demo") if word == run else word for word in shlex.split(command)]
    if side != "optimized_wgmma_triple_overlap.cu":
        target, define = re.search(r"(arch=\S+) and (-DSIDE=\S+)\.$", blackwell).groups()
        words = [*(target if word.startswith("arch=") else word for word in words), *shlex.split(define)]
        assert side in words[-1]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    ended = subprocess.run([tmp_path / "demo"], capture_output=True, text=True, check=False)
    no_gpu = ("CUDA driver", "no CUDA-capable device", "no kernel image")
    assert (ended.returncode == 0) or any(reason in ended.stderr for reason in no_gpu)
