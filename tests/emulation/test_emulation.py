"""Every plain CUDA side is right on the CPU; and the emulation finds what is wrong with kernels that are wrong on purpose."""

import re
import shutil
from pathlib import Path

import pytest

from common.python.discovery import discover
from common.python.settings import PROJECT_ROOT
from tests.emulation.emulate import check_side
from tests.emulation.translate import NotEmulated

TREE = discover(PROJECT_ROOT)
SIDES = {side: pair.workload for pair in TREE.pairs for side in pair.sides.values() if side.suffix == ".cu"}
TEMPLATES = PROJECT_ROOT / "common" / "python" / "templates" / "pair"

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

WORKLOAD = '''"""A vector."""
import torch
from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=REFERENCE,
    time_at={"n": 4096},
    check_at=({"n": 100}, {"n": 256}, {"n": 1}),
    work=lambda n: {},
    rtol=1e-6,
    atol=0.0,
)
'''
COPY = "lambda x: x.clone()"


def check(tmp_path, kernels, body, reference=COPY):
    """Check a side with `kernels` whose LAUNCH does `body` against `reference`, a function of x."""
    (tmp_path / "workload_v.py").write_text(WORKLOAD.replace("REFERENCE", reference))
    side = tmp_path / "optimized_v.cu"
    side.write_text(
        f'// A side.\n#include "common/cuda/launch.cuh"\n{kernels}\n'
        f"LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {{\n{body}\nreturn cudaGetLastError();\n}}\n"
    )
    return check_side(tmp_path / "workload_v.py", side)


def wrong(tmp_path, kernels, body="copy<<<ceil_div(n, 64), 64, 0, stream>>>(x, y, n);", reference=COPY):
    """The sentence that the check of a wrong side ends with."""
    with pytest.raises(AssertionError) as caught:
        check(tmp_path, kernels, body, reference)
    return str(caught.value)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: str(side.relative_to(PROJECT_ROOT)))
def test_every_plain_cuda_side(side):
    try:
        notes = check_side(SIDES[side], side)
    except NotEmulated as reason:
        pytest.skip(str(reason))
    if notes:
        pytest.skip("; ".join(notes))


@pytest.mark.parametrize("side", ["baseline.cu", "optimized.cu"])
def test_the_templates_of_a_new_pair(side, tmp_path):
    shutil.copy(TEMPLATES / side, tmp_path / f"{Path(side).stem}_x.cu")
    assert check_side(TEMPLATES / "workload.py", tmp_path / f"{Path(side).stem}_x.cu") == []


KERNEL = "__global__ void copy(const float* x, float* y, int n) {{\n    int i = blockIdx.x * 64 + threadIdx.x;\n{}\n}}"
REVERSE = """
__global__ void copy(const float* x, float* y, int n) {{
    __shared__ float tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    {}
    {}
    if (i < n) y[i] = tile[63 - (63 - threadIdx.x)];
    {}
}}"""


def test_a_right_copy_is_right(tmp_path):
    assert check(tmp_path, KERNEL.format("if (i < n) y[i] = x[i];"), "copy<<<ceil_div(n, 64), 64, 0, stream>>>(x, y, n);") == []


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "y[i] = x[i];",
            r"kernel copy: block \(1, 0, 0\), thread \(36, 0, 0\) reads 4 bytes at byte 400 of x, which has 400, .*optimized_v.cu:5",
        ),
        ("if (i < n) y[i + 1] = x[i];", r"writes 4 bytes at byte 400 of y, which has 400"),
        ("if (i < n) y[i] = x[i - 1 < 0 ? -1 : i];", r"reads 4 bytes at byte -4 of x"),
        ("if (i < n && i % 4) y[i] = x[i];", r"output y: 25 of 100 elements .* is nan"),
        ("if (i < n - 1) y[i] = x[i];", r"output y: 1 of 100 elements .* at flat index 99, is nan"),
        ("if (i < n) const_cast<float*>(x)[i] = y[i] = x[i];", r"writes x, which is const"),
        ("float* other = nullptr; if (i < n) other[i] = x[i];", r"null pointer"),
        ("if (i < n) y[i] = reinterpret_cast<const float2*>(x + 1)[0].x;", r"not aligned for its type.* at .*optimized_v.cu:5"),
        ("float four[4] = {}; if (i < n) y[i] = four[i];", r"indexes an array out of its bounds at .*optimized_v.cu:5"),
        ("if (i < n) y[i] = x[i]; __shfl_sync(1, i, 0);", r"__shfl_sync at .*:5 for lanes 0x00000001, of which it is none"),
        ("if (i >= n) return; y[i] = x[i]; __syncthreads();", r"waits for ever: .* is at the barrier of .*:5, .* has returned"),
        ("if (i % 2) __syncthreads();\nelse __syncthreads();", r"waits for ever: .* barrier of .*:6, .* barrier of .*:5"),
        (
            "if (i % 2) __syncwarp();\nelse __syncthreads();",
            r"waits for ever: .* at __syncwarp of .*:5 for lanes 0xffffffff, .* barrier of .*:6",
        ),
        ("while (atomicAdd(&y[0], 0.0f) != 1) {}", r"more accesses than are emulated"),
        ("__trap();", r"traps at .*:5"),
    ],
)
def test_what_is_wrong_with_a_kernel_is_said(statement, found, tmp_path):
    assert re.search(found, wrong(tmp_path, KERNEL.format(statement)), re.DOTALL)
