"""What decoders do before every product, in BF16: s = x + r, then s divided by its root mean square, times w."""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rows, cols, eps):
    return {
        "x": rand.normal(rows, cols, dtype=BF16),
        "r": rand.normal(rows, cols, dtype=BF16),
        "w": rand.uniform(cols, low=0.5, high=1.5, dtype=BF16),
    }


def reference(x, r, w, eps):
    """The norm is of s as it is stored, in BF16."""
    s = (x + r).to(BF16).to(x.dtype)
    return s, s * (s.square().mean(dim=1, keepdim=True) + eps).rsqrt() * w


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, cols, eps: {"s": Spec((rows, cols), BF16), "y": Spec((rows, cols), BF16)},
    reference=reference,
    time_at={"rows": 16384, "cols": 4096, "eps": 1e-5},  # 128 MiB a matrix
    check_at=(
        {"rows": 1, "cols": 8, "eps": 1e-5},
        {"rows": 5, "cols": 136, "eps": 1e-5},
        {"rows": 7, "cols": 1032, "eps": 0.5},
        {"rows": 3, "cols": 8192, "eps": 1e-5},  # two packs of 8 a thread are half of it
    ),
    work=lambda rows, cols, eps: {"fp32": 5 * rows * cols, "dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=2**-7,  # both outputs are rounded to BF16; float64 may round a sum between two of them the other way
    atol=1e-6,
)
