"""A linear layer's training step in NVFP4, emulated bit for bit: the answer and both gradients.

The weight's is divided by the root of the number of tokens, so that all three have a deviation of about 1.

The goal is `loss`: the nats a byte that byte_lm ends with, trained for `steps` steps with such layers. A side trains while it prepares,
from the same random weights and on the same text as the other.
"""

import torch
from shared_byte_text import drawn_text
from shared_byte_training import CONFIG, metrics

from common import Spec, Workload
from common.models.decoder import init


def inputs(rand, tokens, k, n, steps, sequences, length):
    layer = {"x": rand.normal(tokens, k), "w": rand.normal(n, k, std=(n * k) ** -0.25), "dy": rand.normal(tokens, n)}
    texts = drawn_text(rand, steps, sequences, length + 1)
    return layer | {"start": init(CONFIG, rand), "texts": texts, "signs": rand.integers(16, low=0, high=2)}


def outputs(tokens, k, n, steps, sequences, length):
    return {name: Spec(shape, torch.float32) for name, shape in {"y": (tokens, n), "dx": (tokens, k), "dw": (n, k)}.items()}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=lambda x, w, dy: (x @ w.T, dy @ w, dy.T @ x * len(x) ** -0.5),
    time_at={"tokens": 2048, "k": 1024, "n": 1024, "steps": 100, "sequences": 16, "length": 256},
    check_at=(
        {"tokens": 48, "k": 48, "n": 64, "steps": 1, "sequences": 1, "length": 16},
        {"tokens": 80, "k": 32, "n": 32, "steps": 1, "sequences": 1, "length": 16},
        {"tokens": 64, "k": 128, "n": 96, "steps": 1, "sequences": 1, "length": 16},
    ),
    work=lambda tokens, k, n, steps, sequences, length: {"fp32": 6 * tokens * k * n},
    rtol=0.05,
    atol=1.0,  # on a CPU errors have a deviation of 0.134, at the check shapes at most 0.145; a call has 5e6 answers. 6.9 of these
    constants=("start", "texts", "signs"),
    goal="loss",
    metrics=metrics,
)
