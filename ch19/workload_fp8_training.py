"""Forward and backward of decoder blocks with Llama-2-7B's shapes, in BF16 outside: the loss and the gradient of every weight.

Weights change from step to step in training, so they are live: a side that packs them does so in every step. `loss_scale` multiplies the
loss so that gradients are about 1, and one tolerance serves all of them.
"""
# needs: fp8

import torch
from shared_decoder_block import NAMES, sizes
from shared_plain_training import reference

from common import Precision, Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, sequences, tokens, width, wide, heads, layers, loss_scale):
    """What is added to the stream is divided by the root of how often that is done, as in GPT-2."""

    gains = dict.fromkeys(("o", "down"), (2 * layers) ** -0.5) | dict.fromkeys("qk", 2.0) | {"v": 0.7, "up": 0.7}  # gradients alike

    def weight(name, rows, cols):
        gain = gains.get(name, 1.0)
        return rand.normal(rows, cols, dtype=BF16, std=gain * cols**-0.5)

    x = rand.normal(sequences, tokens, width, dtype=BF16)
    return {"x": x, "weights": [{name: weight(name, *size) for name, size in sizes(width, wide).items()} for _ in range(layers)]}


def outputs(sequences, tokens, width, wide, heads, layers, loss_scale):
    shapes = sizes(width, wide)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": Spec(shapes[name], BF16) for i in range(layers) for name in NAMES}


def work(sequences, tokens, width, wide, heads, layers, loss_scale):
    """Three products a weight; the attention stays in BF16, and half of its scores are never computed."""
    count = sequences * tokens * layers
    return {"fp8": 6 * count * (4 * width * width + 3 * width * wide), "bf16": 6 * count * tokens * width}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"sequences": 4, "tokens": 2048, "width": 4096, "wide": 11008, "heads": 32, "layers": 1, "loss_scale": 196608.0},
    check_at=(  # of so many tokens that no single one makes up a gradient: of 32 the worst of 245 760 errors was 11 deviations off
        {"sequences": 8, "tokens": 48, "width": 64, "wide": 96, "heads": 2, "layers": 1, "loss_scale": 768.0},
        {"sequences": 4, "tokens": 80, "width": 64, "wide": 160, "heads": 1, "layers": 1, "loss_scale": 640.0},
        {"sequences": 6, "tokens": 64, "width": 32, "wide": 80, "heads": 1, "layers": 1, "loss_scale": 384.0},
    ),
    work=work,
    rtol=0.02,  # by the loss scale gradients are about 1, and rounded to BF16 in every layer
    atol=0.15,
    # Errors of e4m3 have a deviation of up to 0.12 (q and k: a fifth of theirs); a run looks at 1e9 of these. 7.5 deviations.
    changes=Precision(rtol=0.1, atol=0.9),
    changed_by=("optimized", "library"),
    reference_in="float32",  # float64 would take seconds, and BF16 is off by 10 000 times what float32 is
)
