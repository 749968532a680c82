"""One batch of prompts and eight decoding steps through a stack of MLPs of Llama-2-70B's widths; each rank has requests of its own.

Every rank has all weights, so a share of the hidden units is a view of them.
"""

import torch
from shared_mlp_layouts import replicas

from common import Spec, Workload

BF16 = torch.bfloat16
STEPS = 8  # decoding steps per batch of prompts


def inputs(rand, rank, prompt, batch, width, hidden, layers):
    mine = rand.of_rank(rank)

    def layer():
        up = rand.normal(hidden, width, dtype=BF16, std=width**-0.5)
        return {"up": up, "down": rand.normal(hidden, width, dtype=BF16, std=hidden**-0.5)}

    return {
        "prompts": mine.normal(prompt, width, dtype=BF16),
        "decodes": [mine.normal(batch, width, dtype=BF16) for _ in range(STEPS)],
        "weights": [layer() for _ in range(layers)],
    }


def outputs(prompt, batch, width, hidden, layers):
    decoded = {f"decoded.{i}": Spec((batch, width), BF16) for i in range(STEPS)}
    return {"prompted": Spec((prompt, width), BF16)} | decoded


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=lambda prompts, decodes, weights: tuple(replicas(x, weights) for x in (prompts, *decodes)),
    ranks=(2, 4, 8),
    time_at={"prompt": 2048, "batch": 16, "width": 8192, "hidden": 28672, "layers": 4},
    check_at=(
        {"prompt": 9, "batch": 1, "width": 32, "hidden": 64, "layers": 2},
        {"prompt": 33, "batch": 3, "width": 64, "hidden": 128, "layers": 1},
        {"prompt": 16, "batch": 2, "width": 48, "hidden": 80, "layers": 3},
    ),
    # products of all tokens of a rank, and weights that are read once a batch by some rank
    work=lambda prompt, batch, width, hidden, layers: {"bf16": 4 * (prompt + STEPS * batch) * width * hidden * layers},
    rtol=0.02,  # the stream, the products and the sums over ranks are rounded to BF16
    atol=0.06,
    reference_in="float32",  # float64 takes seconds, and BF16 is off by 10 000 times what float32 is
    constants=("weights",),
)
