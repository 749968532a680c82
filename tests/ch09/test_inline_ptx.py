"""ch09:inline_ptx: the sides differ in a root and its instructions; its error is within the tolerance; the demo builds."""

import difflib
import math
import re
import shutil
import subprocess
from collections import Counter

import pytest

from common.python.child.sides.loader import load_workload
from common.python.session.session import BUILD_CACHE
from tests.ch09.sides import CHAPTER, constants, text_of, values_at
from tests.emulation.emulate import check_side
from tests.support.cuda_sides import compiled, listing_of
from tests.support.teeth import accepts

WORKLOAD = load_workload(CHAPTER / "workload_inline_ptx.py")
SIDES = BASELINE, OPTIMIZED = "baseline_inline_ptx.cu", "optimized_inline_ptx.cu"
DEMO = "inline_ptx_example.cu"
ASM = re.compile(r"asm\([^;]*;[^;]*;")
# As PTX bounds it: the root's neighbours are off by 2^-24 to 2^-23 of it more than the root itself is.
ROOTS = {"its own": "y = sqrtf(x);", "the next": "y = sqrtf(x) * (1 + 0x1p-23f);", "the one before": "y = sqrtf(x) * (1 - 0x1p-24f);"}


def test_the_sides_differ_in_whose_root_they_take_and_in_nothing_else():
    code = [re.sub(r"^//.*\n", "", text_of(side), flags=re.MULTILINE) for side in SIDES]
    texts = [re.sub(r"^__device__ float root.*?^}\n\n", "", text, flags=re.MULTILINE | re.DOTALL) for text in code]
    changed = [line.replace(" ", "") for line in difflib.ndiff(*(text.splitlines() for text in texts)) if line[0] in "+-"]
    assert changed == ["-part+=other.w*sqrtf(dx*dx+dy*dy+dz*dz);", "+part+=other.w*root(dx*dx+dy*dy+dz*dz);"]


@pytest.mark.parametrize("root", ROOTS)
def test_the_side_is_right_with_roots_as_far_off_as_ptx_allows(root, tmp_path):
    plain, count = ASM.subn(ROOTS[root], text_of(OPTIMIZED))
    assert count == 1
    (tmp_path / OPTIMIZED).write_text(plain)
    assert check_side(CHAPTER / "workload_inline_ptx.py", tmp_path / OPTIMIZED, cache=BUILD_CACHE) == []


def test_a_root_of_twelve_bits_is_not_taken_for_right(tmp_path):
    (tmp_path / OPTIMIZED).write_text(ASM.sub("y = sqrtf(x) * (1 + 0x1p-12f);", text_of(OPTIMIZED)))
    with pytest.raises(AssertionError, match="y"):
        check_side(CHAPTER / "workload_inline_ptx.py", tmp_path / OPTIMIZED, cache=BUILD_CACHE)


def test_the_reference_sums_weighted_distances():
    points = values_at(WORKLOAD, {"n": 5, "m": 3})["points"].double()
    rows = points.tolist()
    expected = [math.fsum(weight * math.dist(place, other) for *other, weight in rows[:3]) for *place, _ in rows]
    assert WORKLOAD.reference(points, 3).tolist() == pytest.approx(expected, rel=1e-15)


def test_landmarks_are_among_the_points_so_that_roots_of_zero_are_taken():
    shape = WORKLOAD.check_at[-1]
    own = WORKLOAD.reference(values_at(WORKLOAD, shape)["points"].double()[:1], 1)
    assert own.tolist() == [0.0]
    assert all(shape["m"] <= shape["n"] for shape in (*WORKLOAD.check_at, WORKLOAD.time_at))
    assert {shape["m"] % constants(BASELINE)["THREADS"] == 0 for shape in WORKLOAD.check_at} == {True, False}


def loop_of(side, architecture):
    """What a warp issues in a round of the loop over landmarks if none of its roots is of zero: what branches jump over is left out."""
    code = {int(at, 16): text for at, text in re.findall(r"/\*([0-9a-f]{4,})\*/ +([^;]+?) *;", listing_of(CHAPTER / side, architecture))}
    jumps = {at: int(to, 16) for at, text in code.items() for to in re.findall(r"BRA 0x([0-9a-f]+)", text)}
    rounds = [(to, at) for at, to in jumps.items() if to < at and "MUFU" in "".join(text for i, text in code.items() if to <= i <= at)]
    begin, end = min(rounds, key=lambda ends: ends[1] - ends[0])
    over = [(at, to) for at, to in jumps.items() if begin <= at < to <= end and code[at].startswith("@")]
    return [text for i, text in code.items() if begin <= i <= end and not any(at < i < to for at, to in over)]


@pytest.fixture(scope="module", params=["90a", "100a"])
def loops(request):
    return [loop_of(side, request.param) for side in SIDES]


def named(loop):
    """How often each instruction is in a loop, by its first word."""
    return Counter(re.sub(r"^@!?U?P\d ", "", text).split(" ")[0].split(".")[0] for text in loop)


def test_a_round_is_8_distances_that_differ_in_the_instructions_of_their_roots(loops):
    baseline, optimized = (named(loop) for loop in loops)
    distance = {"FADD": 3, "FMUL": 1, "FFMA": 3, "LDS": 1, "MUFU": 1}
    end = {"IADD3": 1, "ISETP": 1, "BRA": 1}
    assert optimized == Counter({name: 8 * count for name, count in distance.items()}) + Counter(end)
    root = Counter({"IADD3": 1, "ISETP": 1, "BSSY": 1, "BRA": 1, "FMUL": 2, "FFMA": 2, "BSYNC": 1})
    assert baseline - optimized == Counter({name: 8 * count for name, count in root.items()}) + Counter({"IADD3": 1})  # an address
    assert sum("MUFU.RSQ" in text for text in loops[0]) == sum("MUFU.SQRT" in text for text in loops[1]) == 8


def test_an_answer_without_1_64_of_the_landmarks_is_wrong():
    values = values_at(WORKLOAD, {"n": 2100, "m": 2048})["points"].double()
    fewer = values.clone()
    fewer[:32, 3] = 0
    assert not accepts(WORKLOAD.tolerance("optimized"), [WORKLOAD.reference(fewer, 2048)], [WORKLOAD.reference(values, 2048)])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("architecture", ["sm_90", "sm_100"])
def test_the_demo_builds_with_its_own_line_and_checks_its_calls(architecture):
    folder, command, run = text_of(DEMO).splitlines()[1].removeprefix("// ").split(" && ")
    assert (folder, run) == ("mkdir -p build", "build/inline_ptx_example")
    program = compiled(command.replace(run, "{}").replace("sm_90", architecture), "inline_ptx_example", [CHAPTER / DEMO])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    no_gpu = ("CUDA driver", "no CUDA-capable device", "no kernel image")
    assert (ended.returncode == 0) or any(reason in ended.stderr for reason in no_gpu)
