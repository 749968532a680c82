"""Machine code of the probe kernels in evidence_cases/, compiled once a test run."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from common.python.disassembly import Kernel, base_name, read_code
from common.python.environment import find_tool
from common.python.settings import PROJECT_ROOT

CASES = Path(__file__).with_name("evidence_cases")

needs_nvcc = pytest.mark.skipif(
    not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()) or find_tool("cuobjdump") is None,
    reason="no nvcc to compile with, or no cuobjdump to read what it makes",
)


@functools.cache
def probes(architecture: str) -> Mapping[str, Kernel]:
    """The kernels of probes.cu by name, for `90a` or `100a`."""
    nvcc = find_tool("nvcc")
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "probes.cubin")
        subprocess.run([str(nvcc), "-cubin", f"-arch=sm_{architecture}", f"-I{PROJECT_ROOT}", CASES / "probes.cu", "-o", cubin], check=True)
        return {base_name(kernel.name): kernel for kernel in read_code(cubin)}
