"""Dequantize a cache: y[t, c] = cache[t, c] * scales[t], from e4m3 values with a float32 scale per token to BF16. Rows: multiples of 16."""

import torch

from common import Spec, Workload


def inputs(rand, tokens, width):
    values = rand.normal(tokens, width, std=100.0).clamp(-448.0, 448.0)  # 448 is e4m3's largest
    return {"cache": values.to(torch.float8_e4m3fn), "scales": rand.uniform(tokens, low=0.001, high=0.02)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, width: {"y": Spec((tokens, width), torch.bfloat16)},
    reference=lambda cache, scales: cache * scales[:, None],
    time_at={"tokens": 131072, "width": 1024},  # keys or values of eight heads of 128: a layer's of 131072 tokens
    check_at=({"tokens": 1, "width": 16}, {"tokens": 33, "width": 48}, {"tokens": 128, "width": 1024}),
    work=lambda tokens, width: {"dram_read": tokens * (width + 4), "dram_write": 2 * tokens * width},
    rtol=2.0**-8,  # BF16 is rounded to 2^-9 of the value; a float32 product before it
    atol=0.0,
    ladder=("sixteen",),
)
