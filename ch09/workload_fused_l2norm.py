"""Divide every row of a float32 matrix by its L2 norm, or by eps where the norm is less: y[r] = x[r] / max(||x[r]||, eps)."""

import torch

from common import Spec, Workload


def inputs(rand, rows, cols, eps):
    x = rand.normal(rows, cols)
    x[::8] *= 1e-3 * eps  # one row in eight has a norm below eps
    return {"x": x}


def outputs(rows, cols, eps):
    return {"y": Spec((rows, cols), torch.float32)}


def reference(x, eps):
    return x / x.square().sum(dim=1, keepdim=True).sqrt().clamp_min(eps)


def work(rows, cols, eps):
    """A square, an addition and a division an element; the root of a row is left out."""
    return {"fp32_fma": 3 * rows * cols, "dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"rows": 16384, "cols": 4096, "eps": 1e-12},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=(
        {"rows": 1, "cols": 1, "eps": 1e-12},
        {"rows": 3, "cols": 31, "eps": 1e-12},  # less than a warp
        {"rows": 9, "cols": 257, "eps": 1e-12},
        {"rows": 17, "cols": 4096, "eps": 1e-6},
        {"rows": 9, "cols": 12_001, "eps": 1e-12},  # 48 KB a row
    ),
    work=work,
    # Both sides add in one order. Emulated, it is off by 2.0e-7 of y at these shapes, and by 2.1e-7, 4 roundings, in 16384 rows of 4096.
    rtol=4e-7,
    atol=0.0,
)
