"""Tokens sorted by expert go through the experts of a layer with 8-bit inputs and weights: how exact are the answers?

One channel of the input is far above the others in a few rows. Both sides multiply the values that 8 bits restore to, in BF16.
"""

import torch
from torch.nn.functional import silu

from common import Precision, Spec, Workload

BF16 = torch.bfloat16
EVERY, CHANNEL = 16, 7  # rows, of which one has a spike, and where


def inputs(rand, rows, experts, hidden, inner, spike):
    x = rand.normal(rows, hidden, dtype=BF16)
    row, channel = torch.arange(rows, device=x.device), torch.arange(hidden, device=x.device)
    spiked = (row % EVERY == 5)[:, None] & (channel == CHANNEL)[None, :]
    gate_up = rand.normal(experts, 2 * inner, hidden, dtype=BF16, std=hidden**-0.5)
    return {
        "x": torch.where(spiked, torch.full_like(x, spike), x),
        "gate_up": torch.where(channel == CHANNEL, gate_up / spike, gate_up),  # trained weights keep such a channel's effect small
        "down": rand.normal(experts, hidden, inner, dtype=BF16, std=inner**-0.5),
        "ends": rand.place((torch.arange(experts, device=x.device) + 1) * rows // experts, "device").int(),
    }


def reference(x, gate_up, down, ends):
    rows, start = [], 0
    for expert, end in enumerate(ends.long().tolist()):
        gate, up = (x[start:end] @ gate_up[expert].T).chunk(2, dim=-1)
        rows.append((silu(gate) * up) @ down[expert].T)
        start = end
    return torch.cat(rows)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, experts, hidden, inner, spike: {"y": Spec((rows, hidden), BF16)},
    reference=reference,
    constants=("gate_up", "down"),
    time_at={"rows": 16384, "experts": 8, "hidden": 4096, "inner": 2048, "spike": 65536.0},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        # Sums are long enough that errors are nearly normal: with 32 products one was 0.7 off.
        {"rows": 32, "experts": 2, "hidden": 512, "inner": 256, "spike": 65536.0},
        {"rows": 70, "experts": 3, "hidden": 544, "inner": 288, "spike": 65536.0},
        {"rows": 17, "experts": 4, "hidden": 512, "inner": 256, "spike": 65536.0},
    ),
    work=lambda rows, experts, hidden, inner, spike: {"bf16": 6 * rows * hidden * inner},
    rtol=0.05,
    # On a CPU errors have a deviation of 0.047, in a row at most 0.057; a call has 6.7e7 answers. 7.9 of the largest.
    atol=0.45,
    changes=Precision(rtol=0.05, atol=0.38),  # 0.040, in a row at most 0.046: 8.3 of these
    reference_in="float32",  # float64 takes seconds, and e4m3 is off by 10 000 times what float32 is
    goal="accuracy",
)
