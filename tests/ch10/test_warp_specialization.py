"""The two warp-specialized Triton pairs: right in Triton's interpreter, with their roles, launches and stages in the machine code."""

import json
import math
import os
import re
import subprocess
import sys

import pytest

from common.python.child.sides.loader import load_workload
from common.python.session.session import BUILD_CACHE
from tests.pairs.harness import Harness
from tests.pairs.proofs import read_pair
from tests.pairs.tree import pairs_of
from tests.support.commands import ROOT_FIRST
from tests.support.teeth import ROOT

pytestmark = pytest.mark.slow

CHAPTER = ROOT / "ch10"
DEQUANTIZED, PERSISTENT = "warp_specialization_producer_consumer", "warp_specialization_blackwell"
WORKLOADS = {pair: load_workload(CHAPTER / f"workload_{pair}.py") for pair in (DEQUANTIZED, PERSISTENT)}
SIDES = [(pair, side) for pair in WORKLOADS for side in ("baseline", "optimized")]
BUILT = [*((*each, "90a") for each in SIDES if each[0] == DEQUANTIZED), *((*each, "100a") for each in SIDES)]
SHARED_BYTES = 227 << 10  # that a block may ask for
FEW_BLOCKS = 2  # of the persistent loop in the interpreter
FEW_TILES = {"m": 257, "n": 264, "k": 136}  # 6, three a block, the last of either kind in part outside

CHECK = f"""
import torch
from types import SimpleNamespace
from tests.ch10.test_warp_specialization import FEW_TILES, PERSISTENT, WORKLOADS
from tests.support.teeth import assert_accepts
torch.cuda.get_device_properties = lambda _device: SimpleNamespace(multi_processor_count={FEW_BLOCKS})
for shape in (*WORKLOADS[PERSISTENT].check_at[:-1], FEW_TILES):
    for side in ("baseline", "optimized"):
        assert_accepts(WORKLOADS[PERSISTENT], f"ch10/{{side}}_{{PERSISTENT}}.py", shape)
"""

# Prints, as JSON, the warps and the TTGIR of the kernel with roles, for Hopper, launched with 4 warps and with 8.
ON_HOPPER = """
import json
import triton
from triton.backends.compiler import GPUTarget
from common.python.child.sides.loader import import_file
from tests.ch10.test_warp_specialization import CHAPTER, DEQUANTIZED
kernel = import_file(CHAPTER / f"optimized_{DEQUANTIZED}.py").dequantized_matmul
tile = {"ROWS": 128, "COLS": 256, "STEP": 64}
source = triton.compiler.ASTSource(
    fn=kernel,
    signature={"w": "*i8", "scale": "*fp32", "x": "*fp16", "y": "*fp16", **dict.fromkeys("nmk", "i32"), **dict.fromkeys(tile, "constexpr")},
    constexprs=tile,
    attrs={(i,): [["tt.divisibility", 16]] for i in range(7)},
)
options = [{"num_warps": warps, "num_stages": 4} for warps in (4, 8)]
compiled = [triton.compile(source, target=GPUTarget("cuda", 90, 32), options=each) for each in options]
print(json.dumps([(each.metadata.num_warps, each.asm["ttgir"]) for each in compiled]))
"""


def python(program, *arguments, cache, interpret):
    """What `program` prints in a process of its own: the interpreter and the compiler cannot share one."""
    environment = {**os.environ, "PYTHONPATH": ROOT_FIRST, "TRITON_CACHE_DIR": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_persistent_sides_are_right_in_the_interpreter_on_a_gpu_of_two_sms(tmp_path):
    python(CHECK, cache=tmp_path, interpret=True)


@pytest.fixture(scope="module")
def seen():
    """What a step of each side launches, and its machine code, compiled ahead as the harness does it, by pair, side and architecture."""
    pairs = [pair for pair in pairs_of() if pair.name in WORKLOADS]
    with Harness() as harness:
        read = {pair.name: read_pair(pair, harness.compile).evidence for pair in pairs}
    return {(name, side, architecture): read[name][side][architecture] for name, side, architecture in BUILT}


def count(seen, pattern):
    (kernel,) = seen.launched_kernels
    return sum(bool(re.search(pattern, text)) for text in kernel.instructions)


@pytest.mark.parametrize(("pair", "architecture"), [(DEQUANTIZED, "90a"), (DEQUANTIZED, "100a"), (PERSISTENT, "100a")])
def test_a_step_is_one_launch_with_four_warps_more_and_room_for_its_stages(seen, pair, architecture):
    (before,), (after,) = (seen[pair, side, architecture].launches for side in ("baseline", "optimized"))
    assert (before.block, after.block) == ((256, 1, 1), (384, 1, 1))
    assert before.grid == after.grid
    stages = 4 * (128 * 64 + 256 * 64 * 2) if pair == DEQUANTIZED else 4 * (128 + 256) * 64 * 2
    assert stages - 128 * 64 < before.shared_bytes <= SHARED_BYTES  # the baseline of one pair has a stage of weights less
    assert stages < after.shared_bytes <= SHARED_BYTES
    assert not any(kernel.spill_bytes for side in ("baseline", "optimized") for kernel in seen[pair, side, architecture].kernels)


def test_the_persistent_loop_fills_the_gpu_once(seen):
    assert {seen[PERSISTENT, side, "100a"].launches[0].grid for side in ("baseline", "optimized")} == {(148, 1, 1)}


def test_on_hopper_two_warpgroups_wait_once_a_step_where_the_baseline_waits_after_every_product(seen):
    before, after = (seen[DEQUANTIZED, side, "90a"] for side in ("baseline", "optimized"))
    assert (count(before, r"^HGMMA\b"), count(before, r"^WARPGROUP\.DEPBAR\b")) == (4, 4)
    assert (count(after, r"^HGMMA\b"), count(after, r"^WARPGROUP\.DEPBAR\b")) == (8, 2)  # each of the two has a loop of its own
    assert count(after, r"^UTMALDG\b") == 3  # one loop loads: the tokens once, the weights in two halves


def test_on_blackwell_weights_reach_the_tensor_core_through_tensor_memory(seen):
    for side in ("baseline", "optimized"):
        assert count(seen[DEQUANTIZED, side, "100a"], r"^UTCHMMA tmem\[")
        assert count(seen[DEQUANTIZED, side, "100a"], r"^STTM\b")


def first_row(ttgir, name):
    """What `name` in a part of TTGIR is in the first block: of a range or of addresses the first; an argument of the part is 0."""
    made = dict(re.findall(r"^\s*(%\w+) = (.*)$", ttgir, re.MULTILINE))
    text = made.get(name, "tt.get_program_id")
    operands = [first_row(ttgir, operand) for operand in re.findall(r"%\w+", text.partition(" : ")[0])]
    values = {
        "tt.get_program_id": lambda: 0,
        "arith.constant": lambda: int(re.search(r"(-?\d+) : i", text)[1]),
        "tt.make_range": lambda: int(re.search(r"start = (\d+)", text)[1]),
        "tt.splat": lambda: operands[0],
        "arith.addi": lambda: sum(operands),
        "tt.addptr": lambda: sum(operands),
        "arith.muli": lambda: math.prod(operands),
    }
    return values[text.split()[0]]()


@pytest.fixture(scope="module")
def on_hopper():
    return json.loads(python(ON_HOPPER, cache=BUILD_CACHE / "triton", interpret=False))


def test_on_hopper_each_half_of_a_tile_is_scaled_by_its_own_rows(on_hopper):
    """Triton cuts the tile in two for the warpgroups that multiply; what it makes of a row's index has to be the row that is stored."""
    (warps, ttgir), _ = on_hopper
    halves = re.split(r"\bpartition\d\(", ttgir)[1:]
    rows = [
        (
            first_row(half, re.search(r"tt\.load (%\w+)", half)[1]),
            first_row(half, re.search(r"copy_local_to_global %\w+\[(%\w+),", half)[1]),
        )
        for half in halves
    ]
    assert warps == 3 * 4
    assert rows == [(0, 0), (64, 64)]


def test_with_eight_warps_the_option_does_nothing_on_hopper(on_hopper):
    _, (warps, ttgir) = on_hopper
    assert warps == 8
    assert "ttg.warp_specialize(" not in ttgir
