"""Sides of one vector, written on the spot: their kernel is in the test, and their reference too."""

import pytest

from tests.emulation.emulate import check_side

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
ARGUMENTS = "const float* x, float* y, int n, cudaStream_t stream"
LAUNCH_COPY = "copy<<<ceil_div(n, 64), 64, 0, stream>>>(x, y, n);"
REVERSED = "lambda x: x.view(-1, 64).flip(1).view(-1)"
KERNEL = "__global__ void copy(const float* x, float* y, int n) {{\n    int i = blockIdx.x * 64 + threadIdx.x;\n{}\n}}"
WHOLE_BLOCKS = ({"n": 64}, {"n": 256})


def check(tmp_path, kernels, body=LAUNCH_COPY, reference=COPY, shapes=None, before="// A side.", arguments=ARGUMENTS):
    """Check a side with `kernels`, from line 3 on, whose LAUNCH does `body`, against `reference`, a function of x."""
    folder = tmp_path / "vectors"  # whose name, which is in the library, is the same in every run
    folder.mkdir(exist_ok=True)
    (folder / "workload_v.py").write_text(WORKLOAD.replace("REFERENCE", reference))
    side = folder / "optimized_v.cu"
    side.write_text(
        f'{before}\n#include "common/cuda/launch.cuh"\n{kernels}\nLAUNCH({arguments}) {{\n{body}\nreturn cudaGetLastError();\n}}\n'
    )
    return check_side(folder / "workload_v.py", side, shapes)


def wrong(tmp_path, *arguments, **options):
    """The sentence that the check of a wrong side ends with."""
    with pytest.raises(AssertionError) as caught:
        check(tmp_path, *arguments, **options)
    return str(caught.value)
