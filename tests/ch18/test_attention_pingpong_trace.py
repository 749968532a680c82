"""The traced ping-pong of attention: right answers, every step stamped in order, shares that follow; untraced no instruction more."""

import ctypes
import itertools
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

from common.python.child.sides.loader import load_workload
from common.python.report.pingpong_trace import PHASES, SOFTMAX, read_pingpong_trace
from tests.ch10.emulated import LAZINESS, build, host_library, inputs_of
from tests.support.cuda_sides import compiled, kernels_of, listing_of, skip_without_tools
from tests.support.teeth import ROOT, accepts

pytestmark = pytest.mark.slow

CHAPTER = ROOT / "ch18"
SIDE = "optimized_warp_specialization_attention_cuda_with_turns.cu"
KERNEL, DEMO = "shared_attention_kernel.cuh", "attention_pingpong_trace.cu"
WORKLOAD = load_workload(CHAPTER / "workload_warp_specialization_attention.py")
WANTED, TAKEN, ISSUED, FED, PASSED, SCORED, WEIGHED, KEYED, SUMMED, ROUNDED, POINTS = range(11)
BLOCKS, MOST = 2, 24
SHAPE = {"heads": 2, "queries": 257, "keys": 1000, "causal": 0}  # 6 tiles of queries on two multiprocessors, 6 tiles of keys each

HOST = """#include "cuda_runtime.h"
#include "shared_pingpong_report.cuh"
Stamps stamps_of(const unsigned long long* all, int blocks, int most) {
    return {{all, all + size_t(blocks) * WARPGROUPS * most * POINTS}, blocks, most};
}
extern "C" void shares(const unsigned long long* all, int blocks, int most, double* told) {
    const Shares found = shares_of(stamps_of(all, blocks, most));
    for (int a = 0; a < PHASES; a++) {
        for (int b = 0; b < PHASES; b++) told[a * PHASES + b] = found.together[a][b];
    }
    told[PHASES * PHASES] = found.step_ns;
    told[PHASES * PHASES + 1] = share_under(found.together, [](int phase) { return phase == SOFTMAX; }, computes_scores);
    told[PHASES * PHASES + 2] = share_under(found.together, [](int phase) { return phase == SOFTMAX; }, may_multiply);
}
extern "C" unsigned long long least(const unsigned long long* all, int blocks, int most) {
    return clock_step(stamps_of(all, blocks, most));
}
extern "C" void told(const unsigned long long* all, int blocks, int most, const char* json, const char* text) {
    const Stamps stamps = stamps_of(all, blocks, most);
    Report report{"NVIDIA H200", "580.1", "2026-01-02", "optimized_x.cu", 64, 4096, 2048, blocks, 32, {}, 0, events_of(stamps, 0, 1, 2)};
    for (int i = 1; i <= 3; i++) report.launches.push_back({100.0 + i, 100.0, shares_of(stamps)});
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
    library = host_library(HOST, tmp_path_factory.mktemp("host"), CHAPTER)
    library.least.restype = ctypes.c_ulonglong
    return library


def shares_of(host, stamps):
    told = np.zeros(len(PHASES) ** 2 + 3)
    host.shares(pointer(stamps), stamps.shape[0], stamps.shape[2], pointer(told))
    together = {(a, b): told[10 * i + j] for i, a in enumerate(PHASES) for j, b in enumerate(PHASES) if told[10 * i + j]}
    return together, *told[100:103].tolist()


# Of one block, a step of warpgroup 0 and, from 40 ns later on, one of warpgroup 1.
FIRST = [100, 110, 115, 116, 120, 140, 180, 181, 190, 200]
SECOND = [110, 121, 125, 126, 130, 160, 195, 196, 210, 220]


def stamps_of(*blocks):
    stamps = np.zeros((len(blocks), 2, 3, POINTS), np.uint64)
    for number, (first, second) in enumerate(blocks):
        stamps[number, :, 1] = first, second  # the first step of a tile is not stamped
    return stamps


def test_shares_follow_from_the_stamps_of_both_warpgroups(host):
    together, step, under_scores, under_products = shares_of(host, stamps_of((FIRST, SECOND)))
    phases = [np.searchsorted(np.array(stamps), np.arange(100, 220), side="right") - 1 for stamps in (FIRST, SECOND)]
    expected = {}
    for a, b in zip(*phases, strict=True):
        pair = PHASES[a], PHASES[b]
        expected[pair] = expected.get(pair, 0) + 1 / 120
    assert together == pytest.approx(expected)
    assert ("softmax", "wait for scores") in together
    assert step == 120
    assert under_scores == pytest.approx(20 / 75)  # softmax of 0: 140 to 180, scores of 1: 121 to 160; softmax of 1: 160 to 195
    assert under_products == pytest.approx((40 + 30) / 75)  # products of values of 0: until 190


def test_shares_are_a_count_of_every_nanosecond(host):
    rng = np.random.default_rng(1)
    for _ in range(10):
        both = [(1000 + np.cumsum(rng.integers(0, 30, POINTS))).tolist() for _ in range(2)]
        begin, end = min(map(min, both)), max(map(max, both))
        phases = [np.searchsorted(np.array(stamps), np.arange(begin, end), side="right") - 1 for stamps in both]
        expected = np.zeros((POINTS, POINTS))
        np.add.at(expected, tuple(phases), 1 / (end - begin))  # before its first stamp a warpgroup is in phase -1, the last: outside
        together = shares_of(host, stamps_of(both))[0]
        found = np.array([[together.get((a, b), 0) for b in PHASES] for a in PHASES])
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("point", range(POINTS - 1))
def test_two_points_that_are_mixed_up_give_other_shares(host, point):
    mixed = list(FIRST)
    mixed[point] += 1
    assert shares_of(host, stamps_of((mixed, SECOND))) != shares_of(host, stamps_of((FIRST, SECOND)))


def test_blocks_add_up_and_the_clocks_step_is_the_least_difference(host):
    later = [each + 5000 for each in FIRST], [each + 5000 for each in SECOND]
    one, two = stamps_of((FIRST, SECOND)), stamps_of((FIRST, SECOND), later)
    assert shares_of(host, two)[0] == pytest.approx(shares_of(host, one)[0])
    assert host.least(pointer(32 * one), 1, 3) == 32
    assert host.least(pointer(0 * one), 1, 3) == 0


def test_what_the_demo_writes_is_what_the_readme_reads(host, tmp_path):
    stamps, json, text = stamps_of((FIRST, SECOND)), tmp_path / "trace.json", tmp_path / "told"
    host.told(pointer(stamps), 1, 3, str(json).encode(), str(text).encode())
    found = read_pingpong_trace(json)
    assert (found.gpu, found.driver, found.date, found.side) == ("NVIDIA H200", "580.1", "2026-01-02", "optimized_x.cu")
    assert (found.shape, found.blocks, found.clock_step_ns) == ({"heads": 64, "queries": 4096, "keys": 2048}, 1, 32)
    assert [(launch.traced_us, launch.untraced_us) for launch in found.launches] == [(101, 100), (102, 100), (103, 100)]
    together = shares_of(host, stamps)[0]
    for launch in found.launches:
        assert launch.together == pytest.approx(np.array([[together.get((a, b), 0) for b in PHASES] for a in PHASES]), abs=1e-6)
        assert launch.under(SOFTMAX, frozenset(PHASES[1:5])) == pytest.approx(20 / 75, abs=1e-5)
    assert len(found.events) == 2 * (POINTS - 1)
    softmax = [(each.tid, each.ts, each.dur) for each in found.events if each.name == "softmax"]
    assert softmax == [(0, pytest.approx(0.04), pytest.approx(0.04)), (1, pytest.approx(0.06), pytest.approx(0.035))]

    lines = [re.sub(r" +", " ", line.strip()) for line in text.read_text().splitlines()]
    assert "26.67 [26.67 to 26.67] its products of scores run" in lines
    assert "93.33 [93.33 to 93.33] its products of scores run, or its products of values may" in lines
    assert "31.25 [31.25 to 31.25] softmax" in lines
    assert "ns a step: 120.00 [120.00 to 120.00], where the clock moves on by 1" not in lines
    assert "us with stamps: 102.00 [101.00 to 103.00]" in lines


def stamped_side(home):
    """A copy of the side in `home`, with all that it includes, whose timed kernel stamps."""
    for file in CHAPTER.glob("shared_*.cuh"):
        shutil.copy(file, home)
    text = (CHAPTER / SIDE).read_text()
    chosen = "using Chosen = Attention<2, 192, 2>;"
    assert chosen in text
    text = text.replace(chosen, '#include "shared_pingpong_stamped.cuh"\nusing Chosen = Attention<2, 192, 2, Stamped>;')
    (home / SIDE).write_text(text)
    return home / SIDE


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("side")
    side = stamped_side(home)
    into = '\nextern "C" void trace_into(unsigned long long* stamps, int most) { trace = {stamps, uint32_t(most)}; }\n'
    side.write_text("#define __constant__\n" + side.read_text() + into)
    return build(SIDE, folder, home), ctypes.CDLL(str(folder / f"{SIDE}.so"))


@pytest.mark.parametrize("laziness", LAZINESS)
def test_every_step_is_stamped_in_order_and_the_answer_is_right(traced, host, laziness):
    emulated, library = traced
    values = inputs_of(WORKLOAD, SHAPE)
    stamps = np.zeros((BLOCKS, 2, MOST, POINTS), np.uint64)
    library.trace_into(pointer(stamps), MOST)
    y = torch.full((SHAPE["heads"], SHAPE["queries"], 128), torch.nan, dtype=torch.bfloat16)
    emulated.launch(values["q"], values["k"], values["v"], y, *SHAPE.values(), multiprocessors=BLOCKS, laziness=laziness)
    assert accepts(WORKLOAD.tolerance("optimized"), [y], [WORKLOAD.reference(*(values[name].double() for name in "qkv"), 0)])

    steps = -(-SHAPE["keys"] // 192)
    stamped = np.array([step < 3 * steps and step % steps > 0 for step in range(MOST)])  # three tiles a block
    assert ((stamps > 0) == stamped[:, None]).all()
    at = stamps[:, :, stamped]
    assert (at[..., :-1] < at[..., 1:]).all()
    assert (at[:, :, :-1, ROUNDED] < at[:, :, 1:, WANTED]).all()
    assert (at[:, 0, :, ISSUED] < at[:, 1, :, TAKEN]).all(), "warpgroup 0 issues first"
    assert (at[:, 1, :-1, ISSUED] < at[:, 0, 1:, TAKEN]).all(), "and its next turn is after that of warpgroup 1"
    assert len(np.unique(at)) == at.size, "one thread of a warpgroup stamps"
    assert sum(shares_of(host, stamps)[0].values()) == pytest.approx(1)


def code_of(side):
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing_of(side))


def test_the_timed_kernels_machine_code_is_as_if_no_stamp_were_there(tmp_path):
    skip_without_tools()
    for file in (*CHAPTER.glob("shared_*.cuh"), CHAPTER / SIDE):
        shutil.copy(file, tmp_path)
    lines = (tmp_path / KERNEL).read_text().splitlines()
    kept = [line for line in lines if "::stamp(" not in line]
    assert len(lines) - len(kept) == POINTS
    (tmp_path / KERNEL).write_text("\n".join(kept) + "\n")
    code = code_of(CHAPTER / SIDE)
    assert len(code) > 500
    assert not any("GLOBALTIMER" in instruction for instruction in code)
    assert code == code_of(tmp_path / SIDE)


def test_the_traced_kernel_reads_the_clock_where_its_phases_change(tmp_path):
    skip_without_tools()
    side = stamped_side(tmp_path)
    (kernel,) = [kernel for kernel in kernels_of(side) if ", false>" in kernel.name]  # not the causal one
    names = ("HGMMA", r"WARPGROUP\.DEPBAR", r"MUFU\.EX2", r"F2FP", r"BAR\.SYNC", r"BAR\.ARV", "SR_GLOBALTIMER", "STL", "LDL")
    order = re.findall(rf"\b(?:{'|'.join(names)})", "\n".join(kernel.instructions))
    clock = [place for place, name in enumerate(order) if name == "SR_GLOBALTIMER"]
    assert len(clock) == POINTS
    between = [order[before + 1 : after] for before, after in itertools.pairwise(clock)]
    waits, products, softmax = between[WANTED], between[TAKEN] + between[FED], between[SCORED]
    assert waits == ["BAR.SYNC"]
    assert products == ["HGMMA"] * (8 + 12) + ["BAR.ARV"]
    assert between[ISSUED] == between[WEIGHED] == []  # loops that wait
    assert between[PASSED] == between[KEYED] == ["WARPGROUP.DEPBAR"]
    assert softmax == ["MUFU.EX2"] * (192 // 2 + 2)
    assert set(between[SUMMED]) == {"F2FP"}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_the_demo_builds_with_its_own_line_and_says_what_gpu_it_needs():
    command = (CHAPTER / DEMO).read_text().splitlines()[1].removeprefix("// ").removesuffix(" && build/attention_pingpong_trace")
    sources = [CHAPTER / DEMO, CHAPTER / SIDE, CHAPTER / "Makefile", *CHAPTER.glob("*.cuh"), *(ROOT / "common/cuda").glob("*.cuh")]
    made = f'folder=$(mktemp -d) && {command} BUILD="$folder" && mv "$folder/attention_pingpong_trace" {{}}'
    program = compiled(made, "attention_pingpong_trace", sources)
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 or re.fullmatch(r"attention_pingpong_trace: found .+; expected a Hopper GPU\n", ended.stderr)
