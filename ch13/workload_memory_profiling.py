"""Forward and backward of a stack of transformer blocks in BF16: the loss and the gradient of every weight."""

import torch
from shared_block import NAMES, leaves_of, sizes
from shared_plain_block import plain_block
from torch.utils.checkpoint import checkpoint

from common import Spec, Workload


def inputs(rand, sequences, tokens, width, heads, layers, loss_scale):
    """What is added to the stream is divided by the root of how often that is done, as in GPT-2."""
    gains = dict.fromkeys(NAMES, 0.6) | dict.fromkeys(("out", "down"), 0.6 * (2 * layers) ** -0.5)

    def weight(name, rows, cols):
        return rand.normal(rows, cols, dtype=torch.bfloat16, std=gains[name] * cols**-0.5)

    x = rand.normal(sequences, tokens, width, dtype=torch.bfloat16)
    return {"x": x, "weights": [{name: weight(name, *size) for name, size in sizes(width).items()} for _ in range(layers)]}


def reference(x, weights, heads, loss_scale):
    """A sequence after the other, and blocks checkpointed, as all of it would not fit in float64."""
    leaves, loss = leaves_of(weights), 0.0
    for sequence in x:
        stream = sequence
        for layer in leaves:
            stream = checkpoint(plain_block, stream, *layer, heads, use_reentrant=False)
        part = loss_scale * stream.square().sum() / x.numel()
        part.backward()
        loss += part.detach()
    return loss, *(weight.grad for layer in leaves for weight in layer)


def work(sequences, tokens, width, heads, layers, loss_scale):
    """A product costs as much again for each of its two gradients; half of a causal attention is never computed."""
    products, attention = 24 * width * width * sequences * tokens, 2 * sequences * tokens * tokens * width
    return {"bf16": 3 * (products + attention) * layers, "dram_read": 24 * width * width * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, tokens, width, heads, layers, loss_scale: (
        {"loss": Spec((), torch.float32)}
        | {f"grad.{i}.{name}": Spec(sizes(width)[name], torch.bfloat16) for i in range(layers) for name in NAMES}
    ),
    reference=reference,
    time_at={"sequences": 4, "tokens": 2048, "width": 1024, "heads": 16, "layers": 12, "loss_scale": 65536.0},  # half of GPT-2 medium
    check_at=(
        {"sequences": 2, "tokens": 9, "width": 64, "heads": 2, "layers": 2, "loss_scale": 512.0},
        {"sequences": 1, "tokens": 64, "width": 64, "heads": 4, "layers": 2, "loss_scale": 1024.0},
        {"sequences": 3, "tokens": 33, "width": 32, "heads": 1, "layers": 2, "loss_scale": 640.0},
    ),
    work=work,
    rtol=0.02,  # By the loss scale gradients are about 1. On an H100 the worst of 3e8 elements is off by 0.1, in gradients of `down`,
    atol=0.15,  # whose products cuBLAS splits along 16 384 tokens and adds in bf16.
    reference_in="float32",  # float64 takes seconds, and sides are off by 10 000 times what float32 is
    goal="memory",
    constants=("weights",),
)
