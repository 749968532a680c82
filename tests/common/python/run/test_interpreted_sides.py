"""On a CPU a Triton kernel is checked in its interpreter and never timed, wherever a side has it from."""

import pytest

from common.python.errors import Status
from common.python.machine.description import child_environment
from common.python.processes.fork_server import ForkServer
from common.python.project import import_folders
from tests.support.commands import CHILD_ENVIRONMENT, ROOT, run_here, write_pair

NOT_TIMED = "checked in Triton's interpreter, which says nothing of speed: not timed on a CPU"
KERNELS = """
import torch
import triton
import triton.language as tl


@triton.jit
def _double(x, y, n, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * SCALE, mask=at < n)


def tri(x, scale=2):
    y = torch.empty_like(x)
    _double[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), SCALE=scale, BLOCK=256)
    return y


def eager(x):
    return x * 2
"""
IMPORTED = '"""Optimized: of the project."""\n\n{}\n\n\ndef prepare(x):\n    return lambda: {}\n'
BY_NAME, HIDDEN = "from ops import eager, tri", "import importlib\n\nops = importlib.import_module('ops')\ntri, eager = ops.tri, ops.eager"


SIDES = {"shown": (BY_NAME, "tri(x)"), "hidden": (HIDDEN, "tri(x)"), "wrong": (HIDDEN, "tri(x, 3)"), "eager": (HIDDEN, "eager(x)")}


@pytest.fixture(scope="module", params=["", "1"])
def rows(request, tmp_path_factory):
    """The row of each side, in a fork server that finds what the root's project has; the variable may be set by the user already."""
    folder = tmp_path_factory.mktemp("interpreted")
    root = folder / "root"
    for name, (imports, call) in SIDES.items():
        write_pair(root, f"demo:{name}", optimized=IMPORTED.format(imports, call))
    (root / "pyproject.toml").touch()
    (root / "ops.py").write_text(KERNELS)
    variables = {**CHILD_ENVIRONMENT, **({"TRITON_INTERPRET": request.param} if request.param else {})}
    with ForkServer(child_environment(ROOT, "cpu", variables, packages=import_folders(root))) as server:
        outcome = run_here(root, folder / "run", server=server, iterations=1, warmup=0)
    return {row.target.partition(":")[2]: row for row in outcome.rows}


@pytest.mark.parametrize("side", ["shown", "hidden"])
def test_a_kernel_that_a_side_imports_is_checked_and_not_timed(rows, side):
    assert (rows[side].status, rows[side].reason, rows[side].timings) == (Status.PASSED, "", {})
    assert NOT_TIMED in rows[side].notes


def test_a_kernel_that_is_wrong_is_found(rows):
    assert rows["wrong"].status is Status.WRONG_RESULT


def test_what_launches_no_kernel_is_timed_though_its_module_has_one(rows):
    assert (rows["eager"].status, list(rows["eager"].timings)) == (Status.PASSED, ["cpu"])
    assert NOT_TIMED not in rows["eager"].notes
