"""A training step of the byte-level model of the tree on one GPU, in float32: forward, backward, and AdamW late in training."""

import torch
from shared_trainer import config_of
from shared_training_reference import reference

from common import Spec, Workload
from common.models.decoder import shapes

STEPS = 2000  # done so far: AdamW's corrections of its averages depend on it


def inputs(rand, width, layers, sequences, tokens):
    """Lists of tensors, in the order of `shapes`. Averages are about as large as the gradients that the weights make."""
    sizes = shapes(config_of(width, layers))

    def weight(name, size):
        return 1 + rand.normal(*size, std=0.1) if name.endswith("norm") else rand.normal(*size, std=size[-1] ** -0.5)

    return {
        "weights": [weight(name, size) for name, size in sizes.items()],
        "averages": [rand.normal(*size) for size in sizes.values()],
        "squares": [rand.uniform(*size, low=4.0, high=16.0) for size in sizes.values()],
        "counts": STEPS + rand.integers(1, low=0, high=9).float().expand(len(sizes)).clone(),
        "text": rand.integers(sequences, tokens + 1, low=0, high=256, dtype=torch.int64),
    }


def work(width, layers, sequences, tokens):
    """Two flops a weight and token forward, four backward; AdamW's seven passes of 4 bytes."""
    sizes = shapes(config_of(width, layers))
    count = sum(torch.Size(size).numel() for size in sizes.values())
    return {"launch": 1, "fp32": 6 * count * sequences * tokens, "dram_read": 16 * count, "dram_write": 12 * count}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda width, layers, sequences, tokens: {"loss": Spec((), torch.float32)},
    reference=reference,
    time_at={"width": 256, "layers": 4, "sequences": 4, "tokens": 128},  # byte_lm, and a batch that a GPU soon computes
    check_at=(
        {"width": 32, "layers": 1, "sequences": 1, "tokens": 5},
        {"width": 64, "layers": 2, "sequences": 3, "tokens": 17},
        {"width": 128, "layers": 1, "sequences": 2, "tokens": 32},
    ),
    work=work,
    rtol=1e-5,
    atol=1e-5,  # on a CPU averages of gradients, which are sums over all tokens, are off by up to 5e-6 more than rtol allows
    in_place=("weights", "averages", "squares", "counts"),
    state="evolves",
    steps=3,
    clock="launch",
)
