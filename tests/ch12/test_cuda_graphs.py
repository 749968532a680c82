"""ch12:cuda_graphs: both sides run the same chain of the same kernel, and the graph's side takes down all that it sets up."""

import re
import shutil

import pytest

from common.python.build.nvcc import architectures_for, build
from common.python.child.sides.cuda import CudaSide, Names, check_source
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from common.python.session.session import BUILD_CACHE
from tests.support.teeth import CPU, ROOT

CHAPTER = ROOT / "ch12"
WORKLOAD = load_workload(CHAPTER / "workload_cuda_graphs.py")
BASELINE, OPTIMIZED = CHAPTER / "baseline_cuda_graphs.cu", CHAPTER / "optimized_cuda_graphs.cu"
CHAIN = ["x", "y", "other", "rows", "cols", "rate", "steps", "stream"]


def signatures_of(side):
    shape = WORKLOAD.check_at[0]
    values = Inputs(WORKLOAD, shape, 1, CPU, ROOT).values
    return check_source(side, Names.of(WORKLOAD, read_directives(side), values, shape))


def names(arguments):
    return [argument.name for argument in arguments]


def test_every_argument_has_something_to_bind():
    assert names(signatures_of(BASELINE).launch) == CHAIN
    graph = signatures_of(OPTIMIZED)
    assert (names(graph.launch), names(graph.prepare)) == (["y", "state", "stream"], [*CHAIN, "state"])
    assert graph.finishes


def test_kernel_and_chain_are_the_same_text():
    def shared(side):
        return re.search(r"#include.*?^}\n\n(?=LAUNCH|PREPARE)", side.read_text(), re.DOTALL | re.MULTILINE)[0]

    assert shared(BASELINE) == shared(OPTIMIZED)
    assert "cudaGraph" not in shared(OPTIMIZED)


def test_the_chain_runs_once_before_it_is_captured_and_then_only_as_a_graph():
    prepare, launch = re.search(r"^PREPARE(.*?)^LAUNCH(.*?)^}", OPTIMIZED.read_text(), re.DOTALL | re.MULTILINE).groups()
    calls = re.findall(r"\b(chain|cuda\w+)\(", prepare)
    capture = ["cudaStreamBeginCapture", "chain", "cudaStreamEndCapture", "cudaGraphInstantiate"]
    assert calls == ["chain", "cudaStreamCreateWithFlags", *capture, "cudaGraphDestroy", "cudaStreamDestroy"]
    assert re.findall(r"\b(chain|cuda\w+)\(", launch) == ["cudaGraphLaunch"]


@pytest.mark.parametrize("steps", range(1, 6))
def test_the_last_step_writes_y_and_none_reads_what_it_writes(steps):
    expression = re.search(r"float\* to = (\w+) % (\d) \? (\w+) : (\w+);", BASELINE.read_text()).groups()
    assert expression == ("left", "2", "y", "other")
    written = ["y" if left % 2 else "other" for left in range(steps, 0, -1)]
    read = ["x", *written[:-1]]
    assert written[-1] == "y"
    assert all(source != target for source, target in zip(read, written, strict=True))


def test_the_timed_grid_has_more_blocks_than_a_gpu_has_sms():
    wide, high = map(int, re.search(r"WIDE = (\d+), HIGH = (\d+)", BASELINE.read_text()).groups())
    shape = WORKLOAD.time_at
    blocks = shape["rows"] // high * (shape["cols"] // wide)
    assert blocks > 132  # more than an H200 has SMs
    assert 4 * shape["rows"] * shape["cols"] == 256 << 10


def test_one_step_fewer_is_wrong():
    shape = WORKLOAD.time_at
    x = Inputs(WORKLOAD, shape, 1, CPU, ROOT).values["x"].double()
    answer, late = (WORKLOAD.reference(x, shape["rate"], steps) for steps in (shape["steps"], shape["steps"] - 1))
    assert ((answer - late).abs() > 100 * (WORKLOAD.atol + WORKLOAD.rtol * answer)).any()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_it_builds_and_says_what_it_was_built_as():
    built = build(OPTIMIZED, architectures_for((), None), cache=BUILD_CACHE, root=ROOT)
    CudaSide(OPTIMIZED, built.library, WORKLOAD, read_directives(OPTIMIZED))
