"""What a Triton side would launch is known without a GPU: the kernels of its step, compiled for an architecture that is not here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common.python.build.sass import read_code
from common.python.errors import SideFailure
from common.python.processes import messages
from common.python.project import PROJECT_ROOT
from tests.support.commands import ROOT_FIRST, write_pair

SIDE = '''"""Optimized: two kernels a step."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, EACH: tl.constexpr):
    i = tl.program_id(0) * EACH + tl.arange(0, EACH)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@triton.autotune(configs=[triton.Config({"EACH": 1024}, num_warps=4), triton.Config({"EACH": 256}, num_warps=1)], key=["n"])
@triton.jit
def tuned(x, y, n, EACH: tl.constexpr):
    i = tl.program_id(0) * EACH + tl.arange(0, EACH)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def prepare(x, n):
    y = torch.empty_like(x)
    other = torch.empty(n, device="cuda")
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    scale[(1,)](x, y, n, EACH=64)

    def step():
        scale[(programs,)](x, y, n, EACH=512, num_warps=8)
        tuned[lambda meta: (triton.cdiv(n, meta["EACH"]),)](y, other, n)
        return BODY

    return step
'''


@pytest.fixture
def observe(triton_server, tmp_path):
    def observed(body="y", capability=(9, 0), n=1 << 40, source=SIDE):
        root = write_pair(tmp_path, optimized=source.replace("BODY", body))
        request = messages.Ahead(
            workload=str(root / "demo/workload_double.py"),
            side=str(root / "demo/optimized_double.py"),
            shape={"n": n},
            capability=capability,
            prefix=str(tmp_path / "code"),
        )
        with triton_server.fork("worker", tmp_path / "log.txt", starts=["triton"]) as child:
            return child.ask(request, messages.Observed, 120)

    return observed


@pytest.mark.parametrize(("capability", "architecture", "sms"), [((9, 0), "90a", 132), ((10, 0), "100a", 148)])
def test_a_step_is_known_by_its_launches_and_their_code(observe, capability, architecture, sms):
    """Of four TiB of inputs, which are never there; what `prepare` launched is not of the step."""
    observed = observe(capability=capability)
    assert [(launch.kernel, launch.grid, launch.block, launch.call) for launch in observed.launches] == [
        ("scale", (sms, 1, 1), (256, 1, 1), 0),
        ("tuned", (1 << 30, 1, 1), (128, 1, 1), 1),
    ]
    assert observed.missed == ""
    kernels = [kernel for cubin in observed.cubins for kernel in read_code(Path(cubin))]
    assert [(kernel.name, kernel.architecture) for kernel in kernels] == [("scale", architecture), ("tuned", architecture)]
    # Storages are aligned and n is a multiple of 16: whole vectors, as they would be on a GPU.
    assert any(re.match(r"LDG\.E.*\.128", text) for text in kernels[1].instructions)


def test_pytorchs_operations_in_a_step_are_named(observe):
    assert observe("y.view(2, -1).mul_(3).add(1)", n=1024).missed == "step also calls aten.mul_, aten.add, whose kernels are seen on a GPU"
    assert observe("torch.empty_like(y).view(-1, 2).mT", n=1024).missed == ""


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch can slice tensors of a GPU that is not there")
def test_a_step_made_as_on_a_cpu_is_known_in_part(observe):
    observed = observe("y[1:]", n=1024)
    assert [launch.kernel for launch in observed.launches] == ["scale", "tuned"]
    assert "tried on a CPU" in observed.missed


def test_a_side_that_reads_its_data_cannot_be_known(observe):
    with pytest.raises(SideFailure, match=r"optimized_double\.py:\d+: raised"):
        observe("y[: int(x.sum().item())]", n=1024)


def test_a_kernel_that_does_not_compile_is_a_sentence(observe):
    with pytest.raises(SideFailure, match="CompilationError"):
        observe(n=1024, source=SIDE.replace("2 * tl.load", "2 * tl.nothing"))


def test_a_side_of_several_ranks_is_seen_on_gpus_alone(triton_server, tmp_path):
    chapter = PROJECT_ROOT / "ch13"
    request = messages.Ahead(
        workload=str(chapter / "workload_fsdp2_fp8.py"),
        side=str(chapter / "optimized_fsdp2_fp8.py"),
        shape={},
        capability=(9, 0),
        prefix=str(tmp_path / "code"),
    )
    with triton_server.fork("worker", tmp_path / "log.txt", starts=["triton"]) as child:
        observed = child.ask(request, messages.Observed, 120)
    assert observed.missed == "it runs in several ranks, whose steps are seen on GPUs"
    assert not observed.launches


GRAPH = SIDE.replace("    def step():", "    def launch():").replace(
    "        return BODY\n\n    return step\n",
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
        BODY

    def step():
        scale[(7,)](x, y, n, EACH=512, num_warps=8)
        graph.replay()
        return y

    return step
""",
)


def test_kernels_of_a_graph_are_those_of_the_step_that_replays_it(observe):
    """The capture itself is of `prepare`; a replay is one launch, whatever is in it."""
    observed = observe("pass", n=1024, source=GRAPH)
    assert [(launch.kernel, launch.grid, launch.call, launch.in_graph) for launch in observed.launches] == [
        ("scale", (7, 1, 1), 0, False),
        ("scale", (132, 1, 1), 1, True),
        ("tuned", (1, 1, 1), 1, True),
    ]
    assert observed.missed == ""
    assert {kernel.name for cubin in observed.cubins for kernel in read_code(Path(cubin))} == {"scale", "tuned"}


def test_a_graph_that_no_step_replays_launches_nothing(observe):
    observed = observe("pass", n=1024, source=GRAPH.replace("        graph.replay()\n", ""))
    assert [launch.grid for launch in observed.launches] == [(7, 1, 1)]


def test_pytorchs_operations_in_a_graph_are_named(observe):
    assert observe("y.add_(1)", n=1024, source=GRAPH).missed == "step also calls aten.add_, whose kernels are seen on a GPU"


TIMES_ITSELF = SIDE.replace("    def step():", "    triton.testing.do_bench(lambda: x + y)\n\n    def step():").replace(
    "import triton.language as tl", "import triton.language as tl\nimport triton.testing"
)
COMPILES = SIDE.replace("    def step():", "    double = torch.compile(lambda x: 2 * x + 1)\n\n    def step():").replace(
    "BODY", "double(y)"
)


@pytest.mark.parametrize(
    ("source", "missed"),
    [
        (TIMES_ITSELF, "it times its own steps, and what it then takes is seen on GPUs"),
        (COMPILES, "torch.compile makes its kernels, which are seen on GPUs"),
    ],
    ids=["times itself", "compiles"],
)
def test_what_only_a_gpu_can_tell_of_a_step_is_left_to_it(observe, source, missed):
    observed = observe(n=1024, source=source)
    assert (observed.missed, observed.launches) == (missed, [])


@pytest.mark.skipif(torch.version.cuda is not None, reason="this PyTorch knows CUDA")
def test_autograd_on_a_gpu_that_pytorch_does_not_know_does_not_end_the_process(observe):
    trains = SIDE.replace("    def step():", "    leaf = x.detach().requires_grad_()\n\n    def step():")
    observed = observe("torch.autograd.grad((leaf * y).sum(), [leaf])[0]", n=1024, source=trains)
    assert "aten.sum" in observed.missed


EARLY = """
import torch
import triton
import triton.language as tl
from common.python.child.sides.triton import mend_interpreter

mend_interpreter()

@triton.jit
def double(x, y):
    tl.extra.cuda.gdc_launch_dependents()
    i = tl.program_id(0)
    tl.extra.cuda.gdc_wait()
    tl.store(y + i, 2 * tl.load(x + i))

x, y, z = torch.arange(3), torch.empty(3, dtype=torch.int64), torch.empty(3, dtype=torch.int64)
double[3,](x, y, launch_pdl=True)
double[3,](y, z, launch_pdl=True)
print(z.tolist())
"""


def test_kernels_that_may_start_early_run_one_after_the_other_in_the_interpreter(tmp_path):
    (tmp_path / "early.py").write_text(EARLY)  # Triton reads a kernel's source from a file
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ROOT_FIRST}
    command = [sys.executable, tmp_path / "early.py"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "[0, 4, 8]\n", done.stderr[-2000:]
