"""nanochat's last product at batch 1: logits of one token, float32, from its bf16 vector and the bf16 weights of the head."""

import torch

from common import Spec, Workload

HEAD = Workload(
    inputs=lambda rand, hidden, vocabulary: {
        "x": rand.normal(hidden, dtype=torch.bfloat16),
        "weights": rand.normal(vocabulary, hidden, dtype=torch.bfloat16, std=hidden**-0.5),
    },
    outputs=lambda hidden, vocabulary: {"logits": Spec((vocabulary,), torch.float32)},
    reference=lambda x, weights: weights @ x,
    constants=("weights",),
    time_at={"hidden": 1280, "vocabulary": 65536},
    check_at=(
        {"hidden": 8, "vocabulary": 1},
        {"hidden": 264, "vocabulary": 1031},
        {"hidden": 1288, "vocabulary": 97},
        {"hidden": 64, "vocabulary": 20011},
    ),
    work=lambda hidden, vocabulary: {
        "bf16": 2 * hidden * vocabulary,
        "dram_read": 2 * hidden * (vocabulary + 1),
        "dram_write": 4 * vocabulary,
    },
    # Tensor cores cut off each of 160 sums, one for 8 products, by half an ulp in the mean: 2.4e-7 at a sum of 4 to 8, 3.8e-5 for all.
    rtol=0.0,
    atol=4e-5,
)
