"""Values of a cache, [tokens, width] in BF16, transposed to [width, tokens], so that a product over tokens reads along rows.

Both sizes are multiples of 8: rows of whole 16 bytes.
"""
# needs: package cutlass_library

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, tokens, width: {"values": rand.normal(tokens, width, dtype=torch.bfloat16)},
    outputs=lambda tokens, width: {"turned": Spec((width, tokens), torch.bfloat16)},
    reference=lambda values: values.T.contiguous(),
    time_at={"tokens": 131072, "width": 1024},  # values of eight heads of 128: a layer's of 131072 tokens
    check_at=({"tokens": 8, "width": 8}, {"tokens": 72, "width": 200}, {"tokens": 264, "width": 64}),
    work=lambda tokens, width: {"dram_read": 2 * tokens * width, "dram_write": 2 * tokens * width},
    rtol=0.0,  # values are moved, not computed
    atol=0.0,
)
