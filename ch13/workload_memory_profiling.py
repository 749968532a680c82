"""Forward and backward of a stack of transformer blocks in BF16: the loss and the gradient of every weight."""

import torch
import torch.nn.functional as F
from shared_block import NAMES, leaves_of
from torch.utils.checkpoint import checkpoint

from common import Spec, Workload

GAIN = 0.6  # of a product over its input; what is added to the stream is divided by the root of how often that is done, as in GPT-2
ADDED = ("out", "down")


def sizes(width):
    return {"qkv": (3 * width, width), "out": (width, width), "up": (4 * width, width), "down": (width, 4 * width)}


def inputs(rand, sequences, tokens, width, heads, layers, loss_scale):
    def weight(name, rows, cols):
        gain = GAIN * (2 * layers) ** -0.5 if name in ADDED else GAIN
        return rand.normal(rows, cols, dtype=torch.bfloat16, std=gain * cols**-0.5)

    x = rand.normal(sequences, tokens, width, dtype=torch.bfloat16)
    return {"x": x, "weights": [{name: weight(name, *size) for name, size in sizes(width).items()} for _ in range(layers)]}


def outputs(sequences, tokens, width, heads, layers, loss_scale):
    gradients = {f"grad.{i}.{name}": Spec(sizes(width)[name], torch.bfloat16) for i in range(layers) for name in NAMES}
    return {"loss": Spec((), torch.float32), **gradients}


def plain_block(x, qkv, out, up, down, heads):
    """`shared_block.block` of one sequence, tokens x width, with softmax written out."""
    tokens, width = x.shape
    split = (F.layer_norm(x, (width,)) @ qkv.T).view(tokens, 3, heads, width // heads)
    q, k, v = split.permute(1, 2, 0, 3)
    future = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
    shares = (q @ k.mT * (width // heads) ** -0.5).masked_fill(future, -torch.inf).softmax(dim=-1)
    x = x + (shares @ v).transpose(0, 1).reshape(tokens, width) @ out.T
    return x + F.gelu(F.layer_norm(x, (width,)) @ up.T) @ down.T


def reference(x, weights, heads, loss_scale):
    leaves = leaves_of(weights)
    loss = torch.zeros((), dtype=x.dtype, device=x.device)
    for y in x:  # one after the other, as a float64 stack of all would not fit
        for layer in leaves:
            y = checkpoint(plain_block, y, *layer, heads, use_reentrant=False)
        part = loss_scale * y.square().sum() / x.numel()
        part.backward()
        loss += part.detach()
    return loss, *(weight.grad for layer in leaves for weight in layer)


def work(sequences, tokens, width, heads, layers, loss_scale):
    """A product costs as much again for each of its two gradients; half of a causal attention is never computed."""
    products = 2 * 12 * width * width * sequences * tokens
    attention = 2 * sequences * tokens * tokens * width
    weights = 2 * 12 * width * width * layers
    return {"bf16": 3 * (products + attention) * layers, "dram_read": weights, "dram_write": weights}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    # GPT-2 medium's stack. The loss scale is the one that mixed-precision training begins with.
    time_at={"sequences": 8, "tokens": 2048, "width": 1024, "heads": 16, "layers": 24, "loss_scale": 65536.0},
    check_at=(
        {"sequences": 2, "tokens": 9, "width": 64, "heads": 2, "layers": 2, "loss_scale": 128.0},
        {"sequences": 1, "tokens": 64, "width": 64, "heads": 4, "layers": 2, "loss_scale": 256.0},
        {"sequences": 3, "tokens": 33, "width": 32, "heads": 1, "layers": 2, "loss_scale": 160.0},
    ),
    work=work,
    # By the loss scale no gradient has a root mean square above 0.6. On a CPU with 24 blocks both sides are off by 1.6 % of it, so the
    # worst of 3e8 elements by some 6 times that.
    rtol=0.02,
    atol=0.06,
    goal="memory",
    constants=("weights",),
)
