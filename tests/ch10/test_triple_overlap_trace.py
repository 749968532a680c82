"""The traced triple overlap: right answers, a stamp for every step and tile, shares that follow; untraced no instruction more."""

import ctypes
import re
import shlex
import shutil
import subprocess
from itertools import combinations

import numpy as np
import pytest

from common.python.child.sides.loader import load_workload
from common.python.report.role_trace import SETS, read_role_trace
from tests.ch10.emulated import CHAPTER, LAZINESS, build, host_library, inputs_of
from tests.support.cuda_sides import compiled, listing_of, skip_without_tools
from tests.support.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_wgmma_triple_overlap.py")
DEMO, SKELETON = "triple_overlap_trace.cu", "shared_triple_overlap.cuh"
SIDES = {"optimized_wgmma_triple_overlap.cu": ("90a", 192, "Wgmma"), "optimized_tmem_triple_overlap.cu": ("100a", 256, "Tcgen05")}
ASKED, LOADED, WANTED, FED, CONSUMED, READING, STORED, POINTS = range(8)
OF_STEPS, OF_TILES = (ASKED, LOADED, WANTED, FED, CONSUMED), (READING, STORED)
ROLES = 4
BITS = ("load", "multiply", "drain", "wait")
NAMES = [" ".join(name for bit, name in enumerate(BITS) if number >> bit & 1) or "nobody" for number in range(1 << ROLES)]
BLOCKS, MOST = 2, 64
SHAPE = {"m": 300, "n": 520, "k": 200}

HOST = """#include "shared_overlap_report.cuh"
extern "C" void by_set(const Span* spans, const int* roles, int count, unsigned long long* time) {
    Spans busy;
    for (int i = 0; i < count; i++) busy[roles[i]].push_back(spans[i]);
    const auto found = time_by_set(busy);
    for (int set = 0; set < 1 << ROLES; set++) time[set] = found[set];
}
Stamps stamps_of(const unsigned long long* all, int blocks, int most) {
    return {{all, all + size_t(POINTS) * blocks * most}, blocks, most};
}
extern "C" void shares(const unsigned long long* all, int blocks, int most, double* told) {
    const Shares found = shares_of(stamps_of(all, blocks, most));
    for (int set = 0; set < 1 << ROLES; set++) told[set] = found.of_time[set];
    told[1 << ROLES] = found.loads_in_flight;
    told[(1 << ROLES) + 1] = found.step_ns;
}
extern "C" unsigned long long least(const unsigned long long* all, int blocks, int most) {
    return clock_step(stamps_of(all, blocks, most));
}
extern "C" void told(const unsigned long long* all, int blocks, int most, const char* json, const char* text) {
    Report report{"NVIDIA H200", "580.1", "2026-01-02", "optimized_x.cu", 8192, 4096, 1024, blocks, 4, 32, {}};
    for (int i = 1; i <= 3; i++) report.launches.push_back({100.0 + i, 100.0, shares_of(stamps_of(all, blocks, most))});
    FILE* to = fopen(json, "w");
    write_json(to, report);
    fclose(to);
    to = fopen(text, "w");
    print(to, report);
    fclose(to);
}
"""


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """The demo's host code as a library."""
    library = host_library(HOST, tmp_path_factory.mktemp("host"))
    library.least.restype = ctypes.c_ulonglong
    return library


@pytest.fixture(scope="module")
def time_by_set(host):
    def call(*roles):
        spans = np.array([span for role in roles for span in role], np.uint64).reshape(-1, 2)
        numbers = np.array([number for number, role in enumerate(roles) for _ in role], np.int32)
        time = np.zeros(1 << ROLES, np.uint64)
        host.by_set(pointer(spans), pointer(numbers), len(spans), pointer(time))
        return time.tolist()

    return call


def test_time_is_told_apart_by_who_was_busy(time_by_set):
    assert time_by_set([], [], []) == [0] * 16
    assert time_by_set([(10, 20)], [(20, 30)], [(35, 40)]) == [5, 10, 10, 0, 5, *[0] * 11]
    assert time_by_set([(0, 100)], [(10, 90)], [(50, 120)], [(60, 70)]) == [0, 10, 0, 40, 20, 10, 0, 30, *[0] * 7, 10]
    assert time_by_set([(0, 6), (2, 8), (8, 9)], [(3, 3)], []) == [0, 9, *[0] * 14], "spans of one role count once"


def test_time_by_set_is_a_count_of_every_nanosecond(time_by_set):
    rng = np.random.default_rng(1)
    for _ in range(20):
        roles = [[(begin, begin + length) for begin, length in rng.integers(1, 40, (5, 2)).tolist()] for _ in range(ROLES)]
        expected = [0] * (1 << ROLES)
        spans = [span for role in roles for span in role]
        for now in range(min(begin for begin, _ in spans), max(end for _, end in spans)):
            expected[sum(any(begin <= now < end for begin, end in role) << number for number, role in enumerate(roles))] += 1
        assert time_by_set(*roles) == expected


# Of one block, two steps of one tile: what each point was stamped with.
STAMPED = {
    ASKED: [100, 110],
    LOADED: [150, 190],
    WANTED: [104, 160],
    FED: [152, 193],
    CONSUMED: [194, 240],
    READING: [241],
    STORED: [300],
}


def stamps_of(stamped):
    stamps = np.zeros((POINTS, 1, 3), np.uint64)
    for point, row in stamped.items():
        stamps[point, 0, : len(row)] = row
    return stamps


def shares_of(host, stamps):
    told = np.zeros(18)
    host.shares(pointer(stamps), stamps.shape[1], stamps.shape[2], pointer(told))
    return {name: share for name, share in zip(NAMES, told[:16].tolist(), strict=True) if share}, *told[16:].tolist()


def test_shares_follow_from_the_stamps_of_each_role(host):
    # 100 load; 104 waits for the first stage; 150 it is there; 152 multiply; 160 waits for the second, loaded at 190; 240 done; 241 drain
    shares, in_flight, step = shares_of(host, stamps_of(STAMPED))
    expected = {
        "load": 4 / 200,
        "load wait": 46 / 200 + 2 / 200,
        "load multiply": 8 / 200,
        "load multiply wait": 30 / 200,
        "multiply wait": 3 / 200,
        "multiply": 47 / 200,
        "nobody": 1 / 200,
        "drain": 59 / 200,
    }
    assert shares == pytest.approx(expected)
    assert in_flight == pytest.approx((50 + 80) / 200)
    assert step == pytest.approx(200 / 2)


@pytest.mark.parametrize(("one", "other"), list(combinations(range(POINTS), 2)))
def test_two_points_that_are_mixed_up_give_other_shares(host, one, other):
    mixed = STAMPED | {one: STAMPED[other], other: STAMPED[one]}
    assert shares_of(host, stamps_of(mixed)) != shares_of(host, stamps_of(STAMPED))


def test_blocks_add_up_and_what_was_not_stamped_is_not_there(host):
    idle = {ASKED: [1000], LOADED: [1600], WANTED: [1000], FED: [1600], CONSUMED: [1601], READING: [1602], STORED: [1800]}
    shares, in_flight, step = shares_of(host, np.concatenate([stamps_of(STAMPED), stamps_of(idle)], axis=1))
    alone = shares_of(host, stamps_of(STAMPED))[0]
    own = {"load wait": 600, "multiply": 1, "nobody": 1, "drain": 198}
    assert shares == pytest.approx({name: (200 * alone[name] + own.get(name, 0)) / 1000 for name in alone})
    assert (in_flight, step) == pytest.approx(((130 + 600) / 1000, 1000 / 3))


def test_the_clocks_step_is_the_least_difference_between_any_two_stamps(host):
    stamps = stamps_of({ASKED: [64, 320], LOADED: [320, 352], STORED: [1024]})
    assert host.least(pointer(stamps), 1, 3) == 32
    assert host.least(pointer(stamps_of({ASKED: [64]})), 1, 3) == 0


def test_what_the_demo_writes_is_what_the_readme_and_reports_read(host, tmp_path):
    stamps, json, text = stamps_of(STAMPED), tmp_path / "trace.json", tmp_path / "told"
    host.told(pointer(stamps), 1, 3, str(json).encode(), str(text).encode())
    found = read_role_trace(json)
    assert (found.gpu, found.driver, found.date, found.side) == ("NVIDIA H200", "580.1", "2026-01-02", "optimized_x.cu")
    assert (found.shape, found.blocks, found.stages, found.clock_step_ns) == ({"m": 8192, "n": 4096, "k": 1024}, 1, 4, 32)
    assert [(launch.traced_us, launch.untraced_us) for launch in found.launches] == [(101, 100), (102, 100), (103, 100)]
    shares, in_flight, step = shares_of(host, stamps)
    assert set(NAMES) == set(SETS)
    for launch in found.launches:
        assert launch.shares == pytest.approx({name: shares.get(name, 0) for name in NAMES}, abs=1e-6)
        assert (launch.loads_in_flight, launch.step_ns) == pytest.approx((in_flight, step), abs=1e-3)

    lines = [re.sub(r" +", " ", line.strip()) for line in text.read_text().splitlines()]
    assert "19.00 [19.00 to 19.00] 15.00 [15.00 to 15.00] load multiply" in lines
    assert "23.50 [23.50 to 23.50] 0.00 [0.00 to 0.00] drain" not in lines
    assert "29.50 [29.50 to 29.50] 0.00 [0.00 to 0.00] drain" in lines
    assert "44.00 [44.00 to 44.00] multiply in all" in lines
    assert "ns a step: 100.00 [100.00 to 100.00], where the clock moves on by 32" in lines
    assert "us with stamps: 102.00 [101.00 to 103.00]" in lines


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    sides = {}
    for side, (_, _, mma) in SIDES.items():
        home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("side")
        for file in CHAPTER.glob("shared_*.cuh"):
            shutil.copy(file, home)
        trace = home / "shared_trace.cuh"
        text, count = re.subn(
            r"asm volatile\(\"cp\.async\.bulk\.wait_group 0;\" ::: \"memory\"\);", "wait_for_stores();", trace.read_text()
        )
        assert count == 1
        wait = "inline void wait_for_stores() { wait_until_stores_have_read(); }  // here a store reads and writes at once\n"
        trace.write_text(text.replace("#ifdef TRACE\n", f'#ifdef TRACE\n#include "common/cuda/tma.cuh"\n{wait}', 1))
        skeleton = home / SKELETON
        read = "mma.read(own, panel,"
        stamped = "trace.stamps[(size_t(READING) * gridDim.x + blockIdx.x) * trace.most + tile]"
        assert read in skeleton.read_text()
        guarded = f'if (leads) on_cpu::require({stamped}, "sums are read that are not stamped as read"); {read}'
        skeleton.write_text(skeleton.read_text().replace(read, guarded))
        into = '\nextern "C" void trace_into(unsigned long long* stamps, int most) { trace = {stamps, most}; }\n'
        launched = f"launch_triple_overlap<{mma}>"
        text = (CHAPTER / side).read_text()
        assert launched in text
        (home / side).write_text("#define TRACE\n" + text.replace(launched, f"launch_triple_overlap<Traced<{mma}>>") + into)
        sides[side] = build(side, folder, home), ctypes.CDLL(str(folder / f"{side}.so"))
    return sides


@pytest.mark.parametrize("laziness", LAZINESS)
@pytest.mark.parametrize("side", SIDES)
def test_every_step_and_tile_is_stamped_in_order_and_the_product_is_right(traced, host, side, laziness):
    emulated, library = traced[side]
    values = inputs_of(WORKLOAD, SHAPE)
    stamps = np.zeros((POINTS, BLOCKS, MOST), np.uint64)
    library.trace_into(pointer(stamps), MOST)
    c = emulated.run(values, SHAPE, multiprocessors=BLOCKS, laziness=laziness)
    assert accepts(WORKLOAD.tolerance("optimized"), [c], [WORKLOAD.reference(values["a"].double(), values["b"].double())])

    steps, count = -(-SHAPE["k"] // 64), -(-SHAPE["m"] // 128) * -(-SHAPE["n"] // SIDES[side][1])
    for block in range(BLOCKS):
        tiles = len(range(block, count, BLOCKS))
        at = stamps[:, block]
        assert [int((row > 0).sum()) for row in at] == [tiles * steps] * len(OF_STEPS) + [tiles] * len(OF_TILES)
        asked, loaded, wanted, fed, consumed = (at[point, : tiles * steps] for point in OF_STEPS)
        reading, stored = (at[point, :tiles] for point in OF_TILES)
        assert (asked < loaded).all()
        assert (asked < fed).all()
        assert (wanted < fed).all()
        assert (fed < consumed).all()
        assert (fed[:-1] < wanted[1:]).all()
        assert (fed[steps - 1 :: steps] < reading).all(), "a tile is read when its last step has been issued"
        assert (reading[:-2] < fed[2 * steps :: steps]).all(), "and before its accumulator is written again"
        assert (reading < stored).all()
        assert (fed[:-4] < asked[4:]).all(), "there are four stages"
    stamped = stamps[stamps > 0]
    assert len(np.unique(stamped)) == len(stamped) == stamped.max() - stamped.min() + 1, "no stamp was written over: one thread stamps"
    assert sum(shares_of(host, stamps)[0].values()) == pytest.approx(1)


def code_of(side, architecture):
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing_of(side, architecture))


@pytest.mark.parametrize("side", SIDES)
def test_without_trace_the_machine_code_is_as_if_no_stamp_were_there(side, tmp_path):
    skip_without_tools()
    for file in (*CHAPTER.glob("shared_*.cuh"), CHAPTER / side):
        shutil.copy(file, tmp_path)
    lines = (tmp_path / SKELETON).read_text().replace(" + TRACED<Mma>", "").splitlines()
    kept = [line for line in lines if not re.search(r"\bstamp(_stored)?<|\bwatch<|shared_trace", line)]
    assert len(lines) - len(kept) == 8
    (tmp_path / SKELETON).write_text("\n".join(kept) + "\n")
    architecture = SIDES[side][0]
    code = code_of(CHAPTER / side, architecture)
    assert len(code) > 500
    assert code == code_of(tmp_path / side, architecture)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("side", SIDES)
def test_the_demo_builds_with_its_own_line_and_checks_its_calls(side):
    first, _, blackwell = (CHAPTER / DEMO).read_text().splitlines()[1:4]
    folder, command, run = first.removeprefix("// ").split(" && ")
    assert folder == "mkdir -p build"
    words = ["{}" if word == run else word for word in shlex.split(command)]
    if side != "optimized_wgmma_triple_overlap.cu":
        target, mma, define = re.search(r"(arch=\S+), (-DMMA=\S+) and (-DSIDE=\S+)\.$", blackwell).groups()
        words = [*(target if word.startswith("arch=") else word for word in words), mma, *shlex.split(define)]
        assert side in words[-1]
    sources = [CHAPTER / DEMO, CHAPTER / side, *CHAPTER.glob("*.cuh"), *(ROOT / "common/cuda").glob("*.cuh")]
    program = compiled(shlex.join(words).replace("'{}'", "{}"), "triple_overlap_trace", sources)
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    no_gpu = ("CUDA driver", "no CUDA-capable device", "no kernel image")
    assert (ended.returncode == 0) or any(reason in ended.stderr for reason in no_gpu)
