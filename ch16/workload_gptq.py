"""A matrix of 4-bit weights times one token: how exact are the products? The shape is gate and up of Llama 2 7B.

Activations are correlated, as in trained models: their covariance has eigenvalues 1 / i along cosines. `samples` are other tokens, known
ahead. Beside it each side says what its way of rounding costs the trained byte model: `nll`, over `sequences` of text.
"""

import math

import torch
from shared_byte_lm import metrics

from common import Spec, Workload

BF16 = torch.bfloat16


def correlated(z):
    """Independent values [tokens, k], turned into tokens of mean square 1 whose covariance has eigenvalues proportional to 1 / i."""
    k = z.shape[1]
    at = torch.arange(k, device=z.device, dtype=torch.float32)
    variance = k / (at + 1) / (1 / (at + 1)).sum()
    waves = torch.cos(math.pi / k * (at[None, :] + 0.5) * at[:, None]) * (2 / k) ** 0.5
    x = (z * variance.sqrt()) @ waves
    return x / x.square().mean(1, keepdim=True).sqrt()


def inputs(rand, k, rows, tokens, sequences):
    # The token has the covariance's variance along each cosine, with random signs. Drawn normally, few cosines have most of its length, and
    # by how much GPTQ is more exact would differ by a tenth from token to token.
    x, samples = rand.normal(1, k).sign(), rand.normal(tokens, k)
    return {
        "x": rand.place(correlated(x), "device"),
        "samples": rand.place(correlated(samples), "device"),
        "weight": rand.normal(rows, k, dtype=BF16, std=k**-0.5),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda k, rows, tokens, sequences: {"y": Spec((1, rows), torch.float32)},
    reference=lambda x, weight: x @ weight.T,
    constants=("samples", "weight"),
    time_at={"k": 4096, "rows": 22016, "tokens": 16384, "sequences": 64},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"k": 128, "rows": 64, "tokens": 512, "sequences": 2},
        {"k": 1152, "rows": 200, "tokens": 1536, "sequences": 2},  # more groups than a tile has
        {"k": 128, "rows": 16384, "tokens": 256, "sequences": 2},
    ),
    work=lambda k, rows, tokens, sequences: {"bf16": 2 * k * rows, "dram_read": 0.5 * k * rows},
    rtol=0.05,
    atol=0.65,  # an error of a tenth; the furthest of a run's 5 million is 5.3 deviations off, and more where few directions make up x
    goal="accuracy",
    metrics=metrics,
)
