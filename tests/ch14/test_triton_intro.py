"""ch14:triton_intro: right in Triton's interpreter, and one read and one write of every value in the code for sm_90 and sm_100."""

import math
import os
import subprocess
import sys

import pytest

from common.python.child.sides.loader import load_workload
from tests.commands import ROOT_FIRST
from tests.teeth import ROOT, assert_accepts, assert_teeth

WORKLOAD = load_workload(ROOT / "ch14/workload_triton_intro.py")

CHECK = """
from tests.teeth import assert_accepts
from tests.ch14.test_triton_intro import WORKLOAD
for shape in WORKLOAD.check_at:
    assert_accepts(WORKLOAD, "ch14/optimized_triton_intro.py", shape)
"""

# Prints 128-bit loads, 128-bit stores, all loads, all stores, and spills, of a program of 16 warps with a row of 16384.
COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from common.python.child.sides.loader import import_file
from tests.teeth import ROOT
kernel = import_file(ROOT / "ch14/optimized_triton_intro.py").softmax_row
source = triton.compiler.ASTSource(
    fn=kernel,
    signature={"x": "*fp32", "y": "*fp32", "cols": "i32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 16384},
    attrs={(i,): [["tt.divisibility", 16]] for i in range(3)},
)
sass = triton.compile(source, target=GPUTarget("cuda", int(sys.argv[1]), 32), options={"num_warps": 16}).asm["sass"]
print(*(sum(mark in line for line in sass.splitlines()) for mark in ("LDG.E.128", "STG.E.128", "LDG", "STG", "STL")))
"""


def python(program, *arguments, cache, interpret):
    """What `program` prints in a process of its own: the interpreter and the compiler cannot share one."""
    environment = {**os.environ, "PYTHONPATH": ROOT_FIRST, "TRITON_CACHE_DIR": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
def test_baseline_is_right_on_values_it_had_not_seen(shape):
    assert_accepts(WORKLOAD, "ch14/baseline_triton_intro.py", shape)


@pytest.mark.parametrize("shape", WORKLOAD.check_at, ids=str)
def test_the_library_is_right(shape):
    assert_accepts(WORKLOAD, "ch14/library_triton_intro.py", shape)


def test_optimized_side_is_right_in_the_interpreter(tmp_path):
    python(CHECK, cache=tmp_path, interpret=True)


@pytest.mark.parametrize("shape", WORKLOAD.check_at[1:], ids=str)
def test_tolerance_has_teeth(shape):
    assert_teeth(WORKLOAD, shape, reduced=("x", 1), identity=-math.inf)


@pytest.mark.parametrize("capability", ["90", "100"])
def test_each_value_is_read_once_and_written_once_and_stays_in_registers(tmp_path, capability):
    # 16384 values are 32 a thread, so 8 accesses of 4.
    assert python(COMPILE, capability, cache=tmp_path, interpret=False) == ["8", "8", "8", "8", "0"]
