"""What uses NVSHMEM compiles against its device library, where there is one; without GPUs nothing of it runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.machine.description import _nvshmem
from common.python.project import PROJECT_ROOT
from tests.support.cuda_sides import compiled

COMPILES = """
import torch.utils._triton

torch.utils._triton.has_triton = lambda: True  # PyTorch for CPUs leaves its device functions out
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import shared_nvshmem_kernels as kernels

TYPES = {"inbox": "*bf16", "y": "*bf16", "arrived": "*i64", "taken": "*i64"}
for kernel in (kernels.hand_off, kernels.wait_for, kernels.give_back):
    source = ASTSource(kernel.jit_func, {name: TYPES.get(name, "i32") for name in kernel.jit_func.arg_names}, {})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"extern_libs": kernel.extern_libs})
    print(kernel.jit_func.__name__, "nvshmem" in compiled.asm["ptx"])
"""


def library() -> Path:
    """The device library; skips the test without it."""
    found = _nvshmem(os.environ)
    return found[0] if found else pytest.skip("no device library of NVSHMEM: neither the package nvidia-nvshmem-cu13 nor NVSHMEM_LIB_DIR")


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_kernels_compile(tmp_path: Path) -> None:
    library()
    here = os.environ | {"PYTHONPATH": str(PROJECT_ROOT / "ch04"), "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", COMPILES], env=here, capture_output=True, text=True, timeout=150, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["hand_off", "True", "wait_for", "True", "give_back", "True"]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_examples_build_with_their_own_line_and_check_themselves() -> None:
    where = library()
    source = PROJECT_ROOT / "ch04/nvshmem_8gpu_examples.cu"
    lines = " ".join(line.removeprefix("//").strip() for line in source.read_text().splitlines()[1:4]).partition("      (")[0]
    command, run = lines.partition(" && ")[2].partition(" && ")[2].rsplit(" && ", 1)
    assert run == "build/nvshmem_8gpu_examples 2"
    command = command.replace("-arch=native", "-arch=sm_90a").replace("build/nvshmem_8gpu_examples", "{}")
    program = compiled(f"N={where.parents[1]}; {command}", "nvshmem_8gpu_examples", [source, PROJECT_ROOT / "ch06/shared_check.cuh"])
    ended = subprocess.run([program, "2"], capture_output=True, text=True, timeout=100, check=False)
    if ended.returncode == 0:
        assert ended.stdout == "ring, all-gather and all-reduce of 2 processes are right\n"
    else:
        assert re.search("CUDA driver|no CUDA-capable device|found 1 GPUs; expected 2", ended.stderr)


def test_training_patterns_say_what_they_need() -> None:
    """Where there are GPUs, torchrun starts the script and the script checks itself."""
    here = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(PROJECT_ROOT / "ch04/nvshmem_training_patterns.py")]
    ended = subprocess.run(command, env=here, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "skipped: needs GPUs, and PyTorch with NVSHMEM\n"
