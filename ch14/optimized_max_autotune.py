"""Optimized: autotuned products convert 8-bit weights on the way in."""
# predicts: baseline 328 us = layers * (3 * width**2 / dram_copy + 2 * width**2 / dram_read + 3 * 2e-6)  (3 kernels of 2 us: assumed)
# predicts: optimized 66.2 us = layers * (width**2 / dram_read + 2e-6)  (a byte a weight; a kernel of 2 us: assumed)
# proves: launches < 0.7 x baseline
# proves: counter dram__bytes.sum < 0.5 x baseline

import torch
from torch.nn.functional import silu

OPTIONS = {
    **torch._inductor.list_mode_options("max-autotune-no-cudagraphs"),  # without CUDA graphs, which are another idea
    # How many products are timed with conversion and scaling fused in. By default it is one, the fastest without: several nearly tie.
    "max_epilogue_benchmarked_choices": 10,
}


# The compiler fuses the conversion into Triton's product, since it needs no FP32 arithmetic.
@torch.compile(options=OPTIONS, fullgraph=True, dynamic=False)
def network(x, weights, scales):
    for weight, scale in zip(weights, scales, strict=True):
        x = silu((x @ weight.to(torch.bfloat16)) * scale)  # the scale behind the product: codes as such are exact in BF16
    return x


def prepare(x, weights, scales):
    return lambda: network(x, weights, scales)
