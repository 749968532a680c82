"""ch07:l2_streaming: the expected ratio is that of an L2 that keeps what was last used, and the sides differ in their hints only."""

import math
import re

import pytest

from common.python.directives import read_directives
from common.python.disassembly import read_code
from common.python.loader import load_workload
from tests.ch07.sides import CHAPTER, arguments, text_of
from tests.cuda_sides import built
from tests.emulation.emulate import check_side
from tests.teeth import assert_teeth

WORKLOAD = load_workload(CHAPTER / "workload_l2_streaming.py")
BASELINE, FIRST, LAST = "baseline_l2_streaming.cu", "optimized_l2_streaming.cu", "optimized_l2_streaming_evict_last.cu"
HINTED = [FIRST, LAST]
STREAMED, ROW = 260, 128  # bytes: of a token, once, its class among them; of the table, again and again
# Bytes: tests of others read 40 MB again and again at the speed of an H200's L2, 48 at three quarters of it and 58 at half
# (github.com/te42kyfo/gpu-benches, gpu-l2-cache/h200.txt).
KEPT = 44e6


@pytest.mark.parametrize("side", [BASELINE, *HINTED])
def test_every_argument_has_something_to_bind(side):
    assert arguments(WORKLOAD, side) == ["x", "table", "kind", "y", "tokens", "stream"]


def share_of_rows_that_miss(table):
    """Of rows drawn at random from `table` bytes, in a cache of the last bytes used: those streamed and the rows between them."""
    tokens = 0
    while tokens * STREAMED + table * (1 - math.exp(-tokens * ROW / table)) < KEPT:
        tokens += 100
    return math.exp(-tokens * ROW / table)


def test_the_expected_ratio_is_that_of_the_rows_that_miss():
    pattern = r"^([\d.]+)x, a token takes (\d+) bytes of memory; before, (\d+) % .* the (\d+) MB .*: (\d+) bytes$"
    ratio, after, share, kept, before = map(float, re.search(pattern, read_directives(CHAPTER / FIRST).expects).groups())
    table = ROW * WORKLOAD.time_at["kinds"]
    missed = share_of_rows_that_miss(table)
    assert kept == KEPT / 1e6
    assert share / 100 == pytest.approx(missed, abs=0.01)
    assert after == pytest.approx(STREAMED + table / WORKLOAD.time_at["tokens"], abs=0.5)
    assert before == pytest.approx(STREAMED + missed * ROW, abs=0.5)
    assert ratio == pytest.approx(before / after, abs=0.05)
    assert read_directives(CHAPTER / LAST).expects.startswith(
        f"{ratio}x, the bytes of evict-first streams, {after:.0f} a token and not {before:.0f}:"
    )


def test_the_table_fits_what_the_l2_keeps_and_its_rows_are_read_21_times():
    assert ROW * WORKLOAD.time_at["kinds"] < 0.6 * KEPT
    assert WORKLOAD.time_at["tokens"] // WORKLOAD.time_at["kinds"] == 21
    assert "whose rows are read 21 times" in text_of(BASELINE)


def without_hints(side):
    """The side's code with plain accesses in place of those that carry a policy."""
    plain = re.sub(
        r"__device__ (?:uint64_t evict_first|float4 load_\w+|void store_once)\([^{]*\{.*?\n\}\n|//[^\n]*",
        "",
        text_of(side),
        flags=re.DOTALL,
    )
    plain = plain.replace("#include <cstdint>\n", "").replace("load_once(x + i)", "x[i]")
    return re.sub(r"store_once\((\w) \+ i, (.*)\);", r"\1[i] = \2;", re.sub(r"load_to_keep\((\w+) \+ ([^;]*)\);", r"\1[\2];", plain))


@pytest.mark.parametrize("side", HINTED)
def test_the_sides_differ_in_their_hints_only(side):
    assert without_hints(side).split() == without_hints(BASELINE).split()


@pytest.mark.parametrize("side", HINTED)
def test_a_side_whose_hints_the_cpu_does_not_know_is_right_without_them(side, tmp_path):
    """What the wrappers do but for the policy is one access each; their PTX is replaced by it."""
    plain = re.sub(r"asm volatile\([^;]*;[^;]*;", "*to = v;", text_of(side))
    plain = re.sub(r"asm\([^;]*;[^;]*;", lambda found: "v = *from;" if "ld.global" in found[0] else "", plain)
    assert "asm" not in plain
    (tmp_path / side).write_text(plain)
    assert check_side(CHAPTER / "workload_l2_streaming.py", tmp_path / side) == []


def instructions(side, folder):
    (kernel,) = read_code(built(side, folder).library)
    return kernel.instructions


def accesses(side, folder):
    """Its loads and stores in order, by name."""
    return [
        text.split()[1] if text.startswith("@") else text.split()[0]
        for text in instructions(side, folder)
        if re.search(r"\b(LDG|STG)\b", text)
    ]


def test_a_token_waits_for_memory_once_its_class_was_asked_for_a_token_ago(tmp_path):
    """In the loop the floats of x and of the table are asked for, then the next class, and only then is anything waited for."""
    for side in (BASELINE, *HINTED):
        assert accesses(CHAPTER / side, tmp_path / side) == ["LDG.E.CONSTANT", *["LDG.E.128.CONSTANT"] * 2, "LDG.E.CONSTANT", "STG.E.128"]


HINT = """#include "common/cuda/launch.cuh"
__global__ void copy(const float4* x, float4* y) {
    float4 v;
    %s
}
LAUNCH(const float* x, float* y, cudaStream_t stream) { return cudaSuccess; }
"""
LD_L1 = 'asm("ld.global.L1::evict_first.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x));'
ST_L1 = 'asm volatile("st.global.L1::evict_first.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(y), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w));'


def test_ldcs_and_stcs_are_the_hints_that_ptx_has_for_the_l1(tmp_path):
    found = []
    for name, code in {"cs": "v = __ldcs(x); __stcs(y, v);", "l1": LD_L1 + ST_L1}.items():
        (tmp_path / f"{name}.cu").write_text(HINT.replace("%s", code))
        found.append(instructions(tmp_path / f"{name}.cu", tmp_path / name))
    assert found[0] == found[1]
    assert sum(".EF." in text for text in found[0]) == 2


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, WORKLOAD.check_at[2])
