"""ch12:programmatic_dependent_launch_triton: right in the interpreter, in the order of its idea in machine code, and what protects it."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.build.cache import keep_by_content
from common.python.build.sass import read_code
from common.python.child.sides.loader import load_workload
from common.python.session.session import BUILD_CACHE
from tests.pairs.harness import Harness
from tests.pairs.proofs import read_pair
from tests.pairs.tree import Side, pairs_of
from tests.support.commands import ROOT, ROOT_FIRST
from tests.support.cuda_sides import skip_without_tools

TARGET = "ch12:programmatic_dependent_launch_triton"
WAIT = "    tl.extra.cuda.gdc_wait()  # x is read below, so the previous layer must have completed\n"
TRIGGER = "    tl.extra.cuda.gdc_launch_dependents()  # the next layer may start once every program of this layer has started\n"
WEIGHTS = "    w = tl.load("
STORE = "    tl.store("
IN_ORDER = ("launch_pdl=True", "launch_pdl=False")


@pytest.fixture(scope="module")
def pair():
    (found,) = [pair for pair in pairs_of() if pair.target == TARGET]
    return found


@pytest.fixture(scope="module")
def harness():
    with Harness() as started:
        yield started


def changed(pair, folder, *changes):
    """The pair with another optimized side: each change is what is replaced and by what."""
    text = pair.sides["optimized"].read_text()
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    side = folder / pair.sides["optimized"].name
    side.write_text(text)
    return dataclasses.replace(pair, sides={**pair.sides, "optimized": side})


def without(line):
    return (line, "")


def moved_before(line, other):
    return (without(line), (other, line + other))


@pytest.mark.parametrize("side", ["in_order", "optimized"])
def test_a_side_is_right_in_the_interpreter(side, pair, harness):
    """It needs a Hopper only for the instructions that the interpreter passes by."""
    harness.check(Side(pair, side), list(load_workload(pair.workload).check_at))


# Runs the side in a file as early as a GPU may: what a launch writes is seen by nobody until the next launch waits for it, or, where that
# one is not allowed to start early, until it is launched. Prints how many launches were, and how far the answer is from the right one.
EARLIEST = """
import sys
from pathlib import Path
import torch, triton.language as tl
from common.python.child.sides.loader import import_file
from common.python.child.sides.triton import mend_interpreter
mend_interpreter()
unseen, early = [], 0

def wait():
    while unseen:
        memory, written = unseen.pop()
        memory.copy_(written)

class Early:
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def launch(weight, x, y, *sizes, launch_pdl=False, **options):
            global early
            early += launch_pdl
            if not launch_pdl:
                wait()
            written = torch.full_like(y, torch.nan)
            y.fill_(torch.nan)
            self.kernel[grid](weight, x, written, *sizes, **options)
            unseen.append((y, written))
        return launch

tl.extra.cuda.gdc_wait = wait
side = import_file(Path(sys.argv[1]))
side.layer = Early(side.layer)
torch.manual_seed(0)
layers, dim = 5, 20
x, weight = torch.randn(dim), torch.randn(layers, dim, dim) * (2 / dim) ** 0.5
right = x
for matrix in weight:
    right = (matrix @ right).clamp(min=0)
y = side.prepare(x, weight, layers, dim)()
wait()
print(early, float((y - right).abs().max()) < 1e-4)
"""
STARTED_EARLY = {
    "as it is": ((), "5 True"),
    "without the wait": ((without(WAIT),), "5 False"),
    "with the wait behind the reading of x": (moved_before(WAIT, STORE), "5 False"),
    "without the launch that is allowed to start early": ((IN_ORDER,), "0 True"),
}


@pytest.mark.parametrize("case", STARTED_EARLY)
def test_a_kernel_that_starts_early_reads_what_the_one_before_wrote_only_behind_the_wait(case, pair, tmp_path):
    changes, printed = STARTED_EARLY[case]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ROOT_FIRST}
    command = [sys.executable, "-c", EARLIEST, changed(pair, tmp_path, *changes).sides["optimized"]]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == f"{printed}\n", done.stderr[-2000:]


def order(pair, harness, capability):
    """The loads of a kernel at the timed shape, and what its grid waits for and allows, in the order of its machine code."""
    skip_without_tools()
    observed = harness.compile(Side(pair, "optimized"), load_workload(pair.workload).time_at, capability)
    (kernel,) = [kernel for cubin in observed.cubins for kernel in read_code(keep_by_content(Path(cubin), BUILD_CACHE))]
    return [text.split()[0] for text in kernel.instructions if text.startswith(("ACQBULK", "PREEXIT", "LDG"))]


LOAD = "LDG.E.128"


@pytest.mark.parametrize("capability", [(9, 0), (10, 0)])
def test_weights_are_loaded_before_the_wait_and_activations_behind_it(capability, pair, harness):
    """As the CUDA side does; a thread sums four columns of all eight rows, so it reads four activations and not 32."""
    assert order(pair, harness, capability) == ["PREEXIT", *8 * [LOAD], "ACQBULK", LOAD]


def test_machine_code_does_not_tell_that_a_launch_may_start_early(pair, harness, tmp_path):
    other = changed(pair, tmp_path, IN_ORDER)
    assert order(other, harness, (9, 0)) == order(pair, harness, (9, 0))


def test_a_wait_before_the_weights_leaves_no_prologue(pair, harness, tmp_path):
    """Its claims hold and its answers are right: only the order of the machine code tells."""
    other = changed(pair, tmp_path, *moved_before(WAIT, WEIGHTS))
    assert order(other, harness, (9, 0)) == ["PREEXIT", "ACQBULK", *9 * [LOAD]]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "claim"), [(WAIT, "pdl_wait"), (TRIGGER, "pdl_launch_dependents")], ids=["wait", "trigger"])
def test_a_claim_tells_an_instruction_that_is_missing(line, claim, pair, harness, tmp_path):
    skip_without_tools()
    (wrong,) = read_pair(changed(pair, tmp_path, without(line)), harness.compile).wrong()
    assert wrong.startswith(f"optimized: `{claim}` is failed: ")


def test_a_step_is_a_launch_a_layer_of_the_grid_and_threads_of_the_cuda_sides(pair, harness):
    shape = load_workload(pair.workload).time_at
    observed = harness.compile(Side(pair, "optimized"), shape, (9, 0))
    assert [(launch.grid, launch.block) for launch in observed.launches] == shape["layers"] * [((128, 1, 1), (256, 1, 1))]
    assert observed.missed == ""
