"""Route tokens to experts: a token's softmax, its `top` largest, scaled to a sum of 1 and scattered, and each expert's tokens counted."""

import torch

from common import Spec, Workload


def reference(logits, top):
    probs, experts = torch.softmax(logits, dim=-1).topk(top, dim=-1)
    weights = torch.zeros_like(logits).scatter(1, experts, probs / probs.sum(-1, keepdim=True))
    return weights, (weights > 0).sum(0)


WORKLOAD = Workload(
    inputs=lambda rand, tokens, experts, top: {"logits": rand.normal(tokens, experts)},
    outputs=lambda tokens, experts, top: {
        "weights": Spec((tokens, experts), torch.float32),
        "counts": Spec((experts,), torch.int64),
    },
    reference=reference,
    time_at={"tokens": 65536, "experts": 128, "top": 8},  # Qwen3's router, 16 sequences of 4096 tokens
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"tokens": 1, "experts": 2, "top": 1},
        {"tokens": 33, "experts": 8, "top": 2},  # Mixtral's
        {"tokens": 65, "experts": 100, "top": 3},  # no power of two
        {"tokens": 64, "experts": 128, "top": 8},
    ),
    work=lambda tokens, experts, top: {"dram_read": 4 * tokens * experts, "dram_write": 4 * tokens * experts},
    rtol=2e-6,
    atol=1e-7,
)
