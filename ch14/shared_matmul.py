"""Product of two bf16 matrices, c = a b^T, summed in fp32: the work, and PyTorch's answer."""

import torch

from common import Spec, Workload


def workload(check_at):
    """The work of the chapter's matrix products: sums of k products are of unit scale, and each matrix moves once through DRAM."""
    return Workload(
        inputs=lambda rand, m, n, k: {
            "a": rand.normal(m, k, dtype=torch.bfloat16),
            "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16),
        },
        outputs=lambda m, n, k: {"c": Spec((m, n), torch.bfloat16)},
        reference=lambda a, b: a @ b.T,
        time_at={"m": 8192, "n": 8192, "k": 8192},
        cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
        check_at=check_at,
        work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
        rtol=2.0**-8,  # half of what separates two bf16
        # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 5.3e-5 of 65 536 (simulated); times 4.
        atol=2e-4,
    )


def library(a, b):
    """PyTorch's answer, which is cuBLAS's."""
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b.T, out=c)
