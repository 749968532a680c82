"""Kernels and launches for tests of evidence: made up, or out of evidence_cases/probes.cu, compiled once a machine."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from common.python.build.nvcc import build
from common.python.build.sass import Kernel, base_name, read_code
from common.python.machine.description import find_tool
from common.python.processes.messages import Launch
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE

PLAIN = ("LDG.E R1, [R2]", "STG.E [R2], R1")
CASES = Path(__file__).with_name("evidence_cases")

needs_nvcc = pytest.mark.skipif(
    not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()) or find_tool("cuobjdump") is None,
    reason="no nvcc to compile with, or no cuobjdump to read what it makes",
)


@functools.cache
def probes(architecture: str) -> Mapping[str, Kernel]:
    """The kernels of probes.cu by name, for `90a` or `100a`."""
    library = build(CASES / "probes.cu", [architecture], cache=BUILD_CACHE, root=PROJECT_ROOT).library
    return {base_name(kernel.name): kernel for kernel in read_code(library)}


def a_kernel(name: str = "gemm", code: Iterable[str] = PLAIN, **changes: Any) -> Kernel:
    """A kernel with the instructions `code`."""
    fields = {"architecture": "90a", "registers": 32, "stack_bytes": 0, "spill_bytes": 0, "shared_bytes": 0}
    return Kernel(name=name, instructions=tuple(code), **fields | changes)


def a_launch(name: str = "gemm", **changes: Any) -> Launch:
    """A launch of it, of 8 blocks of 128 threads."""
    fields = {"call": 1, "in_graph": False, "grid": (4, 2, 1), "block": (32, 4, 1), "cluster": None, "shared_bytes": 0}
    return Launch(**{"kernel": name, **fields, "registers": None, "occupancy_percent": None} | changes)
