"""Optimized: autotuned products fuse bias and SiLU: half the passes."""
# predicts: baseline 0.499 ms = 8 * layers * rows * width / dram_copy  (a product and a kernel behind it: 2 reads and 2 writes of 2 bytes)
# predicts: optimized 0.25 ms = 4 * layers * rows * width / dram_copy  (1 read and 1 write; the tensor cores need 0.17 ms)
# proves: launches < 0.7 x baseline

import torch
from torch.nn.functional import silu

# The first two options are mode="max-autotune-no-cudagraphs". By default only the product that is fastest by itself is then timed with its
# epilogue, and if that one loses to cuBLAS and a kernel, nothing is fused. Here the eight fastest are.
AUTOTUNED = {"max_autotune": True, "coordinate_descent_tuning": True, "max_epilogue_benchmarked_choices": 8}


@torch.compile(options=AUTOTUNED, fullgraph=True, dynamic=False)
def network(x, weights, biases):
    for weight, bias in zip(weights, biases, strict=True):
        x = silu(x @ weight + bias)
    return x


def prepare(x, weights, biases):
    return lambda: network(x, weights, biases)
