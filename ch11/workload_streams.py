"""Four experts of a mixture: expert i sends its tokens through its own layers, x = relu(x w), in float32; y has the tokens of all in order.

The experts have different numbers of tokens, so one batched product fits them only if all are padded to the largest, as the library does.
They do not need each other.
At the average of 128 tokens, a layer's product has 64 tiles of 64 x 64, for half of a Hopper's SMs; at the larger two, 96.
"""

import torch

from common import Spec, Workload

EXPERTS = 4


def tokens_of(tokens):
    """The tokens of each expert, `tokens` on average."""
    return [tokens * share // 8 for share in (6, 7, 9, 10)]


def inputs(rand, tokens, width, layers):
    return {
        "x": [rand.normal(count, width) for count in tokens_of(tokens)],
        "w": [rand.normal(layers, width, width, std=(2 / width) ** 0.5) for _ in range(EXPERTS)],  # relu halves the variance
    }


def reference(x, w):
    y = list(x)
    for expert, layers in enumerate(w):
        for layer in layers:
            y[expert] = torch.relu(y[expert] @ layer)
    return torch.cat(y)


def work(tokens, width, layers):
    count = sum(tokens_of(tokens))
    return {
        "fp32": 2 * count * width**2 * layers,
        "dram_read": 4 * (count * width + EXPERTS * layers * width**2),
        "dram_write": 4 * count * width,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, width, layers: {"y": Spec((sum(tokens_of(tokens)), width), torch.float32)},
    reference=reference,
    time_at={"tokens": 128, "width": 2048, "layers": 4},
    check_at=(
        {"tokens": 8, "width": 33, "layers": 1},
        {"tokens": 16, "width": 64, "layers": 3},
        {"tokens": 24, "width": 128, "layers": 2},
    ),
    work=work,
    constants=("w",),
    # Activations have unit scale. Sums of 512 products in float32, 8 layers deep: off by at most 3e-6 on a CPU.
    rtol=0.0,
    atol=2e-5,
)
