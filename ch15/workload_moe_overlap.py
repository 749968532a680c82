"""A layer of experts that lie on all ranks, and one expert that all tokens use: y = shared(x) + what each token's `top` experts answer.

Each rank has tokens of its own, experts / ranks of the experts, and a copy of the shared expert. No token is dropped.
"""

from shared_experts import swiglu
from shared_shards import BF16, answered, draw

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, experts, top, hidden, ffn, shared_ffn):
    return {
        **draw(rand, rank, ranks, tokens, experts, top, hidden, ffn),
        "shared_up": rand.normal(2 * shared_ffn, hidden, dtype=BF16, std=hidden**-0.5),
        "shared_down": rand.normal(hidden, shared_ffn, dtype=BF16, std=2 * shared_ffn**-0.5),
    }


def reference(shards, rank, ranks):
    own = shards(rank)
    shared = swiglu(own["x"], own["shared_up"], own["shared_down"])
    return shared + answered(shards, rank, ranks)


def work(tokens, experts, top, hidden, ffn, shared_ffn):
    """Products alone: how many rows a rank's experts get depends on the router, on average as many as its tokens have choices."""
    return {"bf16": 6 * tokens * hidden * (0.9 * top * ffn + shared_ffn)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, hidden, **_: {"y": Spec((tokens, hidden), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    # DeepSeek-V2-Lite's: 64 experts, and two shared ones that are computed as one; a prefill that is long beside what the host launches
    time_at={"tokens": 32768, "experts": 64, "top": 6, "hidden": 2048, "ffn": 1408, "shared_ffn": 2816},
    check_at=(
        {"tokens": 1, "experts": 8, "top": 2, "hidden": 64, "ffn": 32, "shared_ffn": 64},  # experts without a token
        {"tokens": 65, "experts": 8, "top": 1, "hidden": 64, "ffn": 96, "shared_ffn": 64},
        {"tokens": 70, "experts": 16, "top": 4, "hidden": 128, "ffn": 64, "shared_ffn": 128},
    ),
    work=work,
    rtol=0.02,
    atol=0.05,  # the sum of two answers of unit scale, each rounded to BF16
    constants=("up", "down", "shared_up", "shared_down"),
)
