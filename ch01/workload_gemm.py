"""Independent small FP32 matrix products: c[i] = a[i] @ b[i].

Predicted: 32 launches of 9.6 us against one launch and its kernel. Measured: RESULTS.md. All sides take longer, and
the pair's errors nearly cancel.

Why: cuBLAS splits a product of this size along k and launches a second kernel that adds, so a product takes 27 us of host.
The optimized side's kernel runs for 28.5 us instead of 26 (nsys, H200); the rest of its time is a launch and waking the host,
which the clock includes. Nobody measured how long each takes.
"""

import torch

from common import Spec, Workload


def inputs(rand, batch, m, n, k):
    return {"a": rand.normal(batch, m, k), "b": rand.normal(batch, k, n, std=k**-0.5)}  # products of unit scale


def outputs(batch, m, n, k):
    return {"c": Spec((batch, m, n), torch.float32)}


def work(batch, m, n, k):
    return {
        "fp32": 2 * batch * m * n * k,
        "launch": 1,
        "dram_read": 4 * batch * (m * k + k * n),
        "dram_write": 4 * batch * m * n,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=lambda a, b: a @ b,
    ladder=("graph",),
    time_at={"batch": 32, "m": 256, "n": 256, "k": 256},
    cpu_at={"batch": 256, "m": 32, "n": 32, "k": 32},
    check_at=({"batch": 1, "m": 1, "n": 1, "k": 1}, {"batch": 3, "m": 17, "n": 33, "k": 65}, {"batch": 5, "m": 64, "n": 48, "k": 256}),
    work=work,
    # The baseline is off by 1.0e-6 (1 + |c|) on an H200 and 1.4e-6 on a CPU; torch.bmm, which splits no sum, by 1.8e-6 on an H200.
    rtol=4e-6,
    atol=4e-6,
    clock="launch",
)
