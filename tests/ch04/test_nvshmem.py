"""The kernels of nvshmem_pipeline_parallel compile against NVSHMEM's device library, where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.machine.description import describe_machine, unmet
from common.python.project import PROJECT_ROOT

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


@pytest.mark.timeout(200)
def test_kernels_compile(tmp_path: Path) -> None:
    if missing := unmet(("nvshmem",), describe_machine(PROJECT_ROOT), PROJECT_ROOT):
        pytest.skip(missing)
    here = os.environ | {"PYTHONPATH": str(PROJECT_ROOT / "ch04"), "TRITON_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", COMPILES], env=here, capture_output=True, text=True, timeout=150, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["hand_off", "True", "wait_for", "True", "give_back", "True"]
