"""RMSNorm fused with a quantization to e4m3, a scale per row: what stands before an FP8 product. bf16 in, e4m3 and float32 out.

n = x / sqrt(mean(x^2) + 1e-6) * weight, scale = max |n| / 448 and y = n / scale, rounded to e4m3.
The reference does not round y.
"""

import torch

from common import Precision, Spec, Workload

BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn
OF_SCALES = Precision(rtol=2.0**-7, atol=0.0)  # the baseline rounds to bf16 twice before: off by up to a 256th


def reference(x, weight):
    n = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight
    scale = n.abs().amax(-1) / 448
    return n / scale[:, None], scale


WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {"x": rand.normal(rows, width, dtype=BF16), "weight": 0.5 + rand.uniform(width, dtype=BF16)},
    outputs=lambda rows, width: {"y": Spec((rows, width), E4M3), "scale": Spec((rows,), torch.float32, tolerance=OF_SCALES)},
    reference=reference,
    time_at={"rows": 16384, "width": 8192},  # 268 MB in, 134 MB out
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=({"rows": 1, "width": 8}, {"rows": 3, "width": 136}, {"rows": 33, "width": 1000}),
    work=lambda rows, width: {"dram_read": 2 * rows * width, "dram_write": rows * width},
    rtol=0.07,  # rounding to e4m3 is off by up to a sixteenth, and n's own rounding to bf16 before by a 256th
    atol=2.0**-9,  # half of the distance between e4m3 values of the least exponent, with room
)
