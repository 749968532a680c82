"""One token through the feed-forward half of a decoder layer and the next norm, in the shapes of Llama 2 7B at the timed shape.

One channel in 16 of the first norm's output is 6 times as large, as in trained models. `samples` are other tokens, known ahead.
Beside it each side says what its weights' precision costs the trained byte model: `nll`, over `sequences` of text.
"""

import torch
from shared_byte_lm import metrics
from shared_mlp import mlp

from common import Precision, Spec, Workload

BF16 = torch.bfloat16
SAMPLES = 64  # tokens


def inputs(rand, hidden, inner, sequences):
    norm = rand.uniform(hidden, dtype=BF16, low=0.8, high=1.2)
    norm[7::16] *= 6
    return {
        "x": rand.normal(1, hidden, dtype=BF16),
        "samples": rand.normal(SAMPLES, hidden, dtype=BF16),
        "norm": norm,
        "gate_up": rand.normal(2 * inner, hidden, dtype=BF16, std=(3.2 * hidden) ** -0.5),
        "down": rand.normal(hidden, inner, dtype=BF16, std=inner**-0.5),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda hidden, inner, sequences: {"y": Spec((1, hidden), BF16)},
    reference=lambda x, norm, gate_up, down: mlp(x, norm, lambda h: h @ gate_up.T, lambda h: h @ down.T),
    constants=("samples", "norm", "gate_up", "down"),
    time_at={"hidden": 4096, "inner": 11008, "sequences": 64},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"hidden": 256, "inner": 128, "sequences": 2},
        {"hidden": 256, "inner": 640, "sequences": 2},
        {"hidden": 8192, "inner": 128, "sequences": 2},  # more groups than a tile has
    ),
    # In the precision that `changes` admits: half a byte a weight.
    work=lambda hidden, inner, sequences: {"bf16": 6 * hidden * inner, "dram_read": 1.5 * hidden * inner},
    rtol=0.01,
    atol=0.02,
    # An answer's error has a deviation of 0.157; a run looks at a million answers, of which the furthest is 5 off. 6.4 of these.
    changes=Precision(rtol=0.05, atol=1.0),
    metrics=metrics,
)
