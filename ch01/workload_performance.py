"""Forward pass of an MLP: three square Linear layers of FP32 weights, with a GELU between them.

DRAM moves 1267 MB in a step of the optimized side and 1409 MB in one of the baseline (dram__bytes.sum). Each tensor once is 335 MB.
Three products move 349 and 396 MB each, and two GELUs 110 MB each: of the 67 MB that a GELU writes, 24 MB stay in the L2.
"""
# traffic: five kernels hand 67 MB on to each other through DRAM, and what a product reads, 134 MB, is more than the L2 holds

import torch
from torch.nn.functional import gelu

from common import Precision, Spec, Workload

LAYERS = 3
TF32_EPSILON = 2**-11  # 10 bits of mantissa, rounded to nearest; a tensor core that truncates is off by up to twice that


def inputs(rand, batch, width):
    weights = [rand.normal(width, width, std=width**-0.5) for _ in range(LAYERS)]  # 1 / width: activations keep their scale
    return {"x": rand.normal(batch, width), "weights": weights}


def outputs(batch, width):
    return {"y": Spec((batch, width), torch.float32)}


def reference(x, weights):
    hidden = x
    for weight in weights[:-1]:
        hidden = gelu(hidden @ weight)
    return hidden @ weights[-1]


def work(batch, width):
    return {
        "tf32": LAYERS * 2 * batch * width * width,  # the fastest unit whose precision `changes` admits
        "dram_read": 4 * (batch * width + LAYERS * width * width),
        "dram_write": 4 * batch * width,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"batch": 4096, "width": 4096},
    cpu_at={"batch": 256, "width": 1024},
    check_at=({"batch": 1, "width": 64}, {"batch": 33, "width": 257}, {"batch": 256, "width": 1024}),
    work=work,
    # The baseline is off by 8e-6 on an H200, the worst of 16 M sums of 4096 terms each, and by 1e-6 on a CPU.
    rtol=1e-5,
    atol=2e-5,
    # A path through the layers rounds 6 operands. Truncated, each shrinks by 0.7 epsilon on average: 4 epsilon of y, times 2.
    # The rest is random: 1 epsilon times y's scale of 0.4, 5.5 sigma over 16 M outputs: 2 epsilon, times 2.
    changes=Precision(rtol=8 * TF32_EPSILON, atol=4 * TF32_EPSILON),
    constants=("weights",),
)
