"""A stack of recurrent layers over a sequence, in BF16: h[l, t] = tanh(h[l-1, t] w[l] + h[l, t-1] u[l]), where h[-1] is x, and h[l, -1] 0.

A layer is a stage of a pipeline: it needs the stage below at the same token, and itself at the token before.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, layers, tokens, batch, width):
    return {
        "x": rand.normal(tokens, batch, width, dtype=BF16),
        "w": rand.normal(layers, width, width, dtype=BF16, std=width**-0.5),
        "u": rand.normal(layers, width, width, dtype=BF16, std=0.5 * width**-0.5),  # less than 1: errors die away
    }


def reference(x, w, u):
    for below, own in zip(w, u, strict=True):
        h, answers = torch.zeros_like(x[0]), []
        for token in x:
            h = torch.tanh(token @ below + h @ own)
            answers.append(h)
        x = torch.stack(answers)
    return x


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, tokens, batch, width: {"y": Spec((tokens, batch, width), BF16)},
    reference=reference,
    time_at={"layers": 4, "tokens": 64, "batch": 64, "width": 1024},  # a product has 16 tiles of 64 x 64: most SMs are idle
    cpu_at={"layers": 2, "tokens": 8, "batch": 8, "width": 64},
    check_at=(
        {"layers": 1, "tokens": 3, "batch": 2, "width": 40},
        {"layers": 3, "tokens": 1, "batch": 5, "width": 64},
        {"layers": 4, "tokens": 9, "batch": 8, "width": 96},
    ),
    work=lambda layers, tokens, batch, width: {
        "bf16": 4 * layers * tokens * batch * width * width,
        "dram_read": 2 * (tokens * batch * width + 2 * layers * width * width),
        "dram_write": 2 * tokens * batch * width,
    },
    rtol=2**-7,  # y is rounded to BF16
    atol=0.02,  # and so are the sum before tanh, one of its terms, and every layer's answer
    constants=("w", "u"),
)
