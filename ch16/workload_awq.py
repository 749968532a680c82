"""The two products of the feed-forward half of a decoder layer with one token each, in the shapes of Llama 2 7B at the timed shape.

One channel in 16 of their inputs is 6 times as large, as in trained models. `samples` and `inner_samples` are other tokens, known ahead.
Beside them each side says what its weights' precision costs the trained byte model: `nll`, over `sequences` of text.
"""

import torch
from shared_byte_lm import metrics

from common import Precision, Spec, Workload

BF16 = torch.bfloat16
SAMPLES = 64  # tokens


def inputs(rand, hidden, inner, sequences):
    def tokens(n, k):
        drawn = rand.normal(n, k, dtype=BF16)
        drawn[:, 7::16] *= 6
        return drawn

    return {
        "x": tokens(1, hidden),
        "h": tokens(1, inner),
        "samples": tokens(SAMPLES, hidden),
        "inner_samples": tokens(SAMPLES, inner),
        "gate_up": rand.normal(2 * inner, hidden, dtype=BF16, std=(3.2 * hidden) ** -0.5),
        "down": rand.normal(hidden, inner, dtype=BF16, std=(3.2 * inner) ** -0.5),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda hidden, inner, sequences: {"gates": Spec((1, 2 * inner), BF16), "y": Spec((1, hidden), BF16)},
    reference=lambda x, h, gate_up, down: (x @ gate_up.T, h @ down.T),
    constants=("samples", "inner_samples", "gate_up", "down"),
    time_at={"hidden": 4096, "inner": 11008, "sequences": 64},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"hidden": 256, "inner": 128, "sequences": 2},
        {"hidden": 256, "inner": 2176, "sequences": 2},  # a program goes on, and part of its last chunks is beyond the end
        {"hidden": 8192, "inner": 128, "sequences": 2},  # more chunks than a program has at once
    ),
    # In the precision that `changes` admits: half a byte a weight.
    work=lambda hidden, inner, sequences: {"bf16": 6 * hidden * inner, "dram_read": 1.5 * hidden * inner},
    rtol=0.01,
    atol=0.02,
    # An answer's error has a deviation of 0.085, and of 0.1 with plain rounding, as the library's. 6.5 of the latter: a run looks at a
    # million answers.
    changes=Precision(rtol=0.05, atol=0.65),
    changed_by=("optimized", "library"),
    metrics=metrics,
)
