"""Every side that a CPU can run gives its reference's answer at every check shape, on two seeds that it has not seen.

A PyTorch or Triton side runs as in a row: in a worker of the harness, Triton's in its interpreter, on poisoned memory, judged by the
referee. A CUDA side runs in the emulation; what that does not have is skipped by name, and is for the chapter's own tests.
"""

import shutil
from pathlib import Path

import pytest

from common.python.child.sides.loader import load_workload
from common.python.errors import SideFailure
from common.python.machine.needs import package_of, unmet_packages
from common.python.machine.storage_needs import STORAGE, unmet_storage
from common.python.pairs.directives import read_directives
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE
from tests.emulation.emulate import check_side
from tests.emulation.translate import NotEmulated
from tests.pairs.planted import BASELINE, IN_PYTHON, planted
from tests.pairs.tree import Side, pairs_of, parameters, sides_of

SIDES = sides_of(pairs_of())
IN_CUDA = [side for side in SIDES if side.file.suffix == ".cu"]
IN_PYTHON_OR_TRITON = [side for side in SIDES if side.file.suffix == ".py"]
MOST_WORK = 2e9  # flops and bytes of a step: a core does as many in two seconds or less
COST = {"fp8": 3.0}  # of a flop, where PyTorch's products on a CPU are slower

# Python sides without `needs:` that a CPU cannot run as they are, by path, and where they are checked instead.
ELSEWHERE = {
    "ch09/library_cutlass_gemm.py": "torch.mm has an out_dtype on a GPU alone",
    "ch09/library_tensor_core.py": "torch.mm has an out_dtype on a GPU alone",
    "ch10/baseline_warp_specialization_blackwell.py": "asks for a GPU's SMs; test_warp_specialization.py says how many there are",
    "ch10/optimized_warp_specialization_blackwell.py": "asks for a GPU's SMs; test_warp_specialization.py says how many there are",
    "ch14/optimized_helion.py": "Helion asks for a GPU's SMs; test_helion.py says how many there are",
}
# How many of the check shapes a side is right at on a CPU, where that is not all of them.
SHAPES = {  # PyTorch's sums on a CPU, compiled or not, are not as precise in rows of 131072 and more
    "ch10/library_cluster_group.py": 3,
    "ch10/library_dsmem_reduction.py": 3,
}


def marks_of(side):
    """The tiles of chapter 10 take the emulation some ten seconds."""
    return (pytest.mark.slow,) if side.pair.directory == "ch10" else ()


needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def shapes_of(side):
    """The check shapes of a side, and the shape that is timed on a CPU, but for those that are too much work for one."""
    workload = load_workload(side.pair.workload)
    others = [] if workload.cpu_at is None else [workload.cpu_at]
    shapes = [*workload.check_at[: SHAPES.get(name_of(side))], *others]
    return [shape for shape in shapes if work_of(workload, shape) < MOST_WORK]


def work_of(workload, shape):
    """The flops and bytes of a step, as many as a CPU's time says."""
    return sum(COST.get(kind, 1.0) * amount for kind, amount in workload.work_of(shape).items())


def name_of(side):
    """The side's path in the tree."""
    return str(side.file.relative_to(PROJECT_ROOT)) if side.file.is_relative_to(PROJECT_ROOT) else side.file.name


def unmet_here(side):
    """Why this machine's CPU cannot run a Python side: a need of the GPU, or a package or something of storage that is not here."""
    of_side, of_workload = (read_directives(file).needs for file in (side.file, side.pair.workload))
    elsewhere = [need for need in of_side if need not in STORAGE and not package_of(need)]
    if elsewhere:
        return f"needs {', '.join(elsewhere)}"
    reasons = [unmet_packages([*of_side, *of_workload]), *unmet_storage(of_side, gpu=False, folder=PROJECT_ROOT)]
    return "; ".join(filter(None, reasons))


def emulate(side):
    """Check a CUDA side in the emulation, at the shapes that are not too large. Raises AssertionError and NotEmulated."""
    notes = check_side(side.pair.workload, side.file, cache=BUILD_CACHE)
    assert len(notes) < len(load_workload(side.pair.workload).check_at), f"no check shape is small enough to emulate: {notes[0]}"


@pytest.mark.parametrize("side", parameters(IN_PYTHON_OR_TRITON))
def test_python_side(side, harness):
    if reason := unmet_here(side):
        pytest.skip(f"{name_of(side)} {reason}")
    if name_of(side) in ELSEWHERE:
        pytest.skip(ELSEWHERE[name_of(side)])
    shapes = shapes_of(side)
    assert shapes, f"no check shape of {side.pair.workload.name} is little enough work for a CPU"
    harness.check(side, shapes)


@needs_gcc
@pytest.mark.parametrize("side", parameters(IN_CUDA, marks_of))
def test_cuda_side(side):
    try:
        emulate(side)
    except NotEmulated as reason:
        pytest.skip(str(reason))


def test_every_exception_is_a_side_of_the_tree():
    assert {*ELSEWHERE, *SHAPES} <= {name_of(side) for side in IN_PYTHON_OR_TRITON}


WRONG = {
    "a wrong answer": ("x.sum(dim=1)", "x.sum(dim=1) + 1", "are outside"),
    "less work": ("x.sum(dim=1)", "x[:, 2:].sum(dim=1)", "are outside"),
    "another dtype": ("x.sum(dim=1)", "x.sum(dim=1).double()", "output y is torch.float64"),
    "another layout": ("x.sum(dim=1)", "x.sum(dim=1).repeat_interleave(2)[::2]", "expected contiguous values"),
    "a changed input": ("lambda: x.sum(dim=1)", "lambda: x.abs_().sum(dim=1)", "changed its inputs x"),
    "an answer remembered": ("return lambda: x.sum(dim=1)", "y = x.sum(dim=1)\n    return lambda: y", "are outside"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_python_side_that_is_wrong_is_refused(wrong, harness, tmp_path):
    before, after, message = WRONG[wrong]
    pair = planted(tmp_path, baseline=IN_PYTHON.replace(before, after))
    with pytest.raises((SideFailure, AssertionError), match=message):
        harness.check(Side(pair, "baseline"), shapes_of(Side(pair, "baseline")))


def test_a_python_side_that_is_right_is_not(harness, tmp_path):
    pair = planted(tmp_path, baseline=IN_PYTHON)
    harness.check(Side(pair, "baseline"), shapes_of(Side(pair, "baseline")))


@needs_gcc
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [("c < cols", "c < cols - 1", "are outside"), ("row >= rows", "row > rows", "reads 4 bytes at byte 8 of x, which has 8")],
)
def test_a_cuda_side_that_is_wrong_is_refused(before, after, message, tmp_path):
    pair = planted(tmp_path, baseline=BASELINE.replace(before, after))
    with pytest.raises(AssertionError, match=message):
        emulate(Side(pair, "baseline"))


@needs_gcc
def test_a_cuda_side_that_is_right_is_not(tmp_path):
    pair = planted(tmp_path)
    for name in pair.sides:
        emulate(Side(pair, name))


TOY = Path(__file__).parents[1] / "serving"


def toy(name):
    """A pair of the toy that serves requests."""
    (pair,) = [pair for pair in pairs_of(TOY) if pair.name == name]
    return Side(pair, "optimized")


def test_a_side_that_serves_is_held_to_its_workload(harness):
    harness.check(toy("toy"), shapes_of(toy("toy")))


def test_a_side_that_serves_wrong_answers_is_refused(harness):
    with pytest.raises((SideFailure, AssertionError), match="a probed logit is off by"):
        harness.check(toy("toy_stale_block"), shapes_of(toy("toy_stale_block")))
