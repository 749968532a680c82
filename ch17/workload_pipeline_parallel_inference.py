"""Prompts run through layers of Llama-2-7B's form that lie on several GPUs, in order. Every rank answers for the last tokens.

`y` is [sequences, hidden]. Rank r has layers / ranks layers (a stage). Stage 0 begins with x, which all ranks have.
"""

from shared_layers import reference_run
from shared_weights import BF16, config_of, draw

from common import Spec, Workload


def inputs(rand, rank, ranks, sequences, tokens, layers, hidden, heads, ffn):
    if layers % ranks:
        raise ValueError(f"layers={layers} and {ranks} ranks; expected as many layers on every rank")
    return {
        "x": rand.normal(sequences, tokens, hidden, dtype=BF16),
        "weights": draw(rand.of_rank(rank), layers // ranks, hidden, ffn),
    }


def reference(x, shards, ranks, layers, hidden, heads, ffn):
    config = config_of(layers // ranks, hidden, heads, ffn)
    for peer in range(ranks):
        x, _ = reference_run(shards(peer)["weights"], config, x)
    return x[:, -1]


def work(sequences, tokens, layers, hidden, heads, ffn):
    """What a stage of two must multiply."""
    weights = 4 * hidden * hidden + 3 * hidden * ffn
    return {"bf16": layers // 2 * sequences * tokens * (2 * weights + 2 * tokens * hidden)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, tokens, layers, hidden, heads, ffn: {"y": Spec((sequences, hidden), BF16)},
    reference=reference,
    ranks=(2, 4),
    time_at={"sequences": 8, "tokens": 512, "layers": 8, "hidden": 4096, "heads": 32, "ffn": 11008},
    check_at=(
        {"sequences": 1, "tokens": 3, "layers": 4, "hidden": 64, "heads": 1, "ffn": 96},
        {"sequences": 3, "tokens": 9, "layers": 4, "hidden": 128, "heads": 2, "ffn": 64},
        {"sequences": 5, "tokens": 17, "layers": 8, "hidden": 64, "heads": 2, "ffn": 64},
    ),
    work=work,
    rtol=0.02,
    atol=0.15,  # a residual stream of up to 16 additions, each rounded to BF16: 2^-9 of values of about 4
    constants=("weights",),
)
