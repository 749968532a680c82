"""A small pair that a test writes into a folder of its own, right but for what the test changes."""

from pathlib import Path

from common.python.discovery import Pair
from tests.pairs.tree import pairs_of

WORKLOAD = '''"""Sum the rows of a matrix."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},
    reference=lambda x: x.sum(dim=1),
    time_at={"rows": 64, "cols": 512},
    check_at=({"rows": 2, "cols": 1}, {"rows": 3, "cols": 128}),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows},
    rtol=1e-5,
    atol=1e-5,
)
'''
KERNEL = """__global__ void sum(const float* x, float* y, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float total = 0;
#pragma unroll 1
    for (int c = 0; c < cols; c++) total += x[size_t(row) * cols + c];
    y[row] = total;
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    sum<<<(rows + 127) / 128, 128, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}
"""
INCLUDE = '#include "common/cuda/launch.cuh"\n\n'
BASELINE = f"// Baseline: a thread a row.\n{INCLUDE}{KERNEL}"
UNROLLED = KERNEL.replace("unroll 1", "unroll 8")
OPTIMIZED = f"// Optimized: eight columns at a time.\n// proves: more /FADD/\n{INCLUDE}{UNROLLED}"
IN_PYTHON = '"""Baseline: one call."""\n\n\ndef prepare(x):\n    return lambda: x.sum(dim=1)\n'


def planted(folder: Path, *, workload: str = WORKLOAD, baseline: str = BASELINE, optimized: str = OPTIMIZED) -> Pair:
    """The pair in `folder`; a side is CUDA if it has a LAUNCH, else Python."""
    chapter = folder / "ch01"
    chapter.mkdir()
    (chapter / "workload_sum.py").write_text(workload)
    for name, text in (("baseline", baseline), ("optimized", optimized)):
        (chapter / f"{name}_sum.{'cu' if 'LAUNCH' in text else 'py'}").write_text(text)
    (pair,) = pairs_of(folder)
    return pair
