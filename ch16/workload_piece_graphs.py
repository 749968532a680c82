"""A stream of decode steps, each over another number of cached tokens. Graphs are captured ahead, in set-up; a stream replays them.

Eight sequences, and 4 of the 16 layers of Llama 3.2 1B. Slot 0 of a cache is the newest token's, which every step writes; the other
slots hold earlier tokens, of which a step sees the first ones.
"""

import torch
from shared_llama import decode, turn_at, weights_of
from shared_regions import lengths_of
from torch.nn.functional import linear

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, steps, layers, hidden, heads, inner, sequences, context):
    cache = (sequences, heads // 4, context, hidden // heads)
    return {
        "x": rand.normal(steps, sequences, hidden, dtype=BF16),
        "weights": weights_of(rand, layers, hidden, heads, inner),
        "caches": [[rand.normal(*cache, dtype=BF16) for _ in ("keys", "values")] for _ in range(layers)],
    }


def reference(x, weights, caches, steps, heads, context):
    answers, turn = [], turn_at(context, x.shape[2] // heads, x)
    for tokens, length in zip(x, lengths_of(steps, context), strict=True):
        seen = [[cache[:, :, :length].clone() for cache in pair] for pair in caches]
        answers.append(decode(tokens, weights, seen, turn, heads, linear))
    return torch.stack(answers)


def work(steps, layers, hidden, heads, inner, sequences, context):
    weights = layers * hidden * (2.5 * hidden + 3 * inner)
    return {
        "bf16": 2 * steps * sequences * weights,
        "dram_read": 2 * steps * weights + layers * sequences * hidden * sum(lengths_of(steps, context)),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda steps, layers, hidden, heads, inner, sequences, context: {"y": Spec((steps, sequences, hidden), BF16)},
    reference=reference,
    constants=("weights", "caches"),
    time_at={"steps": 32, "layers": 4, "hidden": 2048, "heads": 32, "inner": 8192, "sequences": 8, "context": 4096},
    cpu_at=None,  # a CPU has no graphs
    check_at=(
        {"steps": 1, "layers": 1, "hidden": 64, "heads": 4, "inner": 96, "sequences": 3, "context": 1},
        {"steps": 5, "layers": 2, "hidden": 128, "heads": 8, "inner": 128, "sequences": 3, "context": 300},
        {"steps": 9, "layers": 2, "hidden": 256, "heads": 8, "inner": 64, "sequences": 3, "context": 7},
    ),
    work=work,
    clock="launch",
    rtol=2**-6,  # bfloat16 rounds what each operator writes, and 4 layers carry that on in the residual stream
    atol=0.06,
)
