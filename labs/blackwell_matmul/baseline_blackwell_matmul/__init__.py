"""The lab's baseline as a function of tensors: to import it builds `baseline_blackwell_matmul.cu`, as a run does, once.

    from labs.blackwell_matmul import baseline_blackwell_matmul
    c = baseline_blackwell_matmul.matmul(a, b)  # bf16, on a GPU: a @ b.T

Without nvcc, or where nvcc fails, the import raises ImportError, which says so.
"""

from pathlib import Path

import torch

from common.python.build.nvcc import architectures_for, build
from common.python.child.sides.cuda import CudaSide
from common.python.child.sides.loader import load_workload
from common.python.errors import SideFailure
from common.python.pairs.directives import read_directives
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE

LAB = Path(__file__).parents[1]
SOURCE = LAB / "baseline_blackwell_matmul.cu"
DIRECTIVES = read_directives(SOURCE)
WORKLOAD = load_workload(LAB / "workload_blackwell_matmul.py")


def _built():
    capability = torch.cuda.get_device_capability() if torch.cuda.is_available() else None
    try:
        return build(SOURCE, architectures_for(DIRECTIVES.needs, capability), flags=DIRECTIVES.nvcc, cache=BUILD_CACHE, root=PROJECT_ROOT)
    except SideFailure as failed:
        raise ImportError(f"{SOURCE.name}: {failed.reason}") from failed


BUILT = _built()
SIDE = CudaSide(SOURCE, BUILT.library, WORKLOAD, DIRECTIVES)


def matmul(a, b):
    """A new c = a @ b.T, launched on torch's current stream; `a` is m x k and `b` n x k, bf16, with n and k multiples of 8."""
    for name, tensor in (("a", a), ("b", b)):
        if tensor.dtype != torch.bfloat16 or tensor.ndim != 2:
            raise ValueError(f"{name}: found {tensor.ndim} dimensions of {tensor.dtype}; expected a matrix of torch.bfloat16")
    (m, k), (n, inner) = a.shape, b.shape
    if inner != k or n % 8 or k % 8:
        raise ValueError(f"found {m} x {k} and {n} x {inner}; expected rows of one length, a multiple of 8, and a multiple of 8 rows of b")
    if not a.is_cuda or a.device != b.device:
        raise ValueError(f"found a on {a.device} and b on {b.device}; expected both on one GPU")
    with torch.cuda.device(a.device):
        step = SIDE.prepare({"a": a.contiguous(), "b": b.contiguous()}, {"m": m, "n": n, "k": k, "clusterDim": 1})
        return step()[0]
