"""The experts of one mixture-of-experts layer for tokens that are being decoded: bf16, sizes of gpt-oss-20b, no biases.

y[t] = sum over the `top` chosen experts e of share[t, e] * down[e] (silu(gate) * up), with gate and up the halves of gate_up[e] x[t].
"""
# needs: tma
# instead: ch13:expert_parallelism

import torch
from torch.nn.functional import silu

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, tokens, experts, top, hidden, inner):
    """Weights [out, in] per expert; `chosen` has different experts for a token, `shares` sum to 1."""
    return {
        "x": rand.normal(tokens, hidden, dtype=BF16),
        "chosen": torch.stack([rand.permutation(experts)[:top] for _ in range(tokens)]).int(),
        "shares": rand.normal(tokens, top).softmax(-1),
        "gate_up": rand.normal(experts, 2 * inner, hidden, dtype=BF16, std=hidden**-0.5),
        "down": rand.normal(experts, hidden, inner, dtype=BF16, std=inner**-0.5),
    }


def reference(x, chosen, shares, gate_up, down):
    rows = []
    for token, own, part in zip(x, chosen.tolist(), shares, strict=True):
        halves = [(gate_up[e].to(x.dtype) @ token).chunk(2) for e in own]
        rows.append(sum(share * (down[e].to(x.dtype) @ (silu(gate) * up)) for e, share, (gate, up) in zip(own, part, halves, strict=True)))
    return torch.stack(rows)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, experts, top, hidden, inner: {"y": Spec((tokens, hidden), BF16)},
    reference=reference,
    time_at={"tokens": 1, "experts": 32, "top": 4, "hidden": 2880, "inner": 2880},
    check_at=(
        {"tokens": 1, "experts": 2, "top": 1, "hidden": 8, "inner": 8},
        {"tokens": 3, "experts": 5, "top": 2, "hidden": 136, "inner": 72},
        {"tokens": 2, "experts": 8, "top": 4, "hidden": 320, "inner": 264},
    ),
    constants=("gate_up", "down"),
    # The least: all tokens choose the same experts.
    work=lambda tokens, experts, top, hidden, inner: {
        "bf16": 6 * tokens * top * hidden * inner,
        "dram_read": 6 * top * hidden * inner,
    },
    rtol=2.0**-7,  # the baseline rounds gate, up, their product, each expert's answer, its share and the sum to bf16
    atol=0.01,
)
