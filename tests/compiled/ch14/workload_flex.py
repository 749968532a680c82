"""Causal attention over one batch of heads, in bfloat16, written as a score modification of FlexAttention."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, heads, tokens, dim: {name: rand.normal(1, heads, tokens, dim, dtype=torch.bfloat16) for name in ("q", "k", "v")},
    outputs=lambda heads, tokens, dim: {"y": Spec((1, heads, tokens, dim), torch.bfloat16)},
    reference=lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
    time_at={"heads": 16, "tokens": 2048, "dim": 64},
    cpu_at={"heads": 2, "tokens": 128, "dim": 64},
    check_at=({"heads": 1, "tokens": 128, "dim": 64}, {"heads": 3, "tokens": 256, "dim": 64}),
    work=lambda heads, tokens, dim: {"bf16": 2 * heads * tokens * tokens * dim},
    clock="launch",
    rtol=2**-7,  # bfloat16 rounds the weights of the values and y: 2^-9 each, of values near 1
    atol=2**-6,
)
