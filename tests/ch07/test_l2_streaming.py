"""ch07:l2_streaming: the sides differ in their hints only, wait for memory once a token, and are right without the hints."""

import re

import pytest

from common.python.session.session import BUILD_CACHE
from tests.ch07.sides import CHAPTER, text_of
from tests.emulation.emulate import check_side
from tests.support.cuda_sides import kernels_of

HINTED = STEP, OPTIMIZED = "optimized_l2_streaming_streams_first.cu", "optimized_l2_streaming.cu"
BASELINE, POLICY = "baseline_l2_streaming.cu", "shared_l2_policy.cuh"


def without_hints(side):
    """A side's code with plain accesses in place of those that carry a policy."""
    plain = re.sub(r"//[^\n]*", "", text_of(side)).replace(f'#include "ch07/{POLICY}"\n', "")
    plain = re.sub(r"load\((\w+) \+ ((?:size_t\(row\) \* LANES \+ lane|i)), evict_\w+\(\)\)", r"\1[\2]", plain)
    return re.sub(r"store\(y \+ i, (.*), evict_first\(\)\);", r"y[i] = \1;", plain)


@pytest.mark.parametrize("side", HINTED)
def test_the_sides_differ_in_their_hints_only(side):
    assert without_hints(side).split() == re.sub(r"//[^\n]*", "", text_of(BASELINE)).split()


def test_the_step_marks_the_streams_alone_and_the_optimized_side_the_table_too():
    marked = {side: re.findall(r"load\((\w+) \+ [^,]+, (evict_\w+)\(\)\)", text_of(side)) for side in HINTED}
    assert marked == {STEP: [("x", "evict_first")], OPTIMIZED: [("x", "evict_first"), ("table", "evict_last")]}


@pytest.mark.parametrize("side", HINTED)
def test_a_side_whose_hints_the_cpu_does_not_know_is_right_without_them(side, tmp_path):
    """What the wrappers do but for the policy is one access each; their PTX is replaced by it."""
    plain = re.sub(r"asm volatile\([^;]*;[^;]*;", "*to = v;", text_of(POLICY))
    plain = re.sub(r"asm\([^;]*;[^;]*;", lambda found: "v = *from;" if "ld.global" in found[0] else "policy = 0;", plain)
    assert "asm" not in plain
    (tmp_path / "ch07").mkdir()
    (tmp_path / "ch07" / POLICY).write_text(plain)
    (tmp_path / side).write_text(text_of(side))
    assert check_side(CHAPTER / "workload_l2_streaming.py", tmp_path / side, cache=BUILD_CACHE) == []


def instructions(side):
    (kernel,) = kernels_of(side)
    return kernel.instructions


def accesses(side):
    """Its loads and stores in order, by name."""
    return [
        text.split()[1] if text.startswith("@") else text.split()[0] for text in instructions(side) if re.search(r"\b(LDG|STG)\b", text)
    ]


def test_a_token_waits_for_memory_once_its_class_was_asked_for_a_token_ago():
    """In the loop the floats of x and of the table are asked for, then the next class, and only then is anything waited for."""
    for side in (BASELINE, *HINTED):
        assert accesses(CHAPTER / side) == ["LDG.E.CONSTANT", *["LDG.E.128.CONSTANT"] * 2, "LDG.E.CONSTANT", "STG.E.128"]


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
        found.append(instructions(tmp_path / f"{name}.cu"))
    assert found[0] == found[1]
    assert sum(".EF." in text for text in found[0]) == 2
