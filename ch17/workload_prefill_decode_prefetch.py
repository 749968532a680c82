"""A prompt runs through layers of Llama-2-7B, whose keys and values must reach the host's memory, where another server takes them.

`kv` is [layers, 2, 1, tokens, heads, dim] in pinned memory; `y` [1, tokens, hidden] is what the layers say.
"""

from shared_layers import reference_run
from shared_weights import BF16, config_of, draw

from common import Spec, Workload


def inputs(rand, layers, tokens, hidden, heads, ffn):
    return {"x": rand.normal(1, tokens, hidden, dtype=BF16), "weights": draw(rand, layers, hidden, ffn)}


def outputs(layers, tokens, hidden, heads, ffn):
    kv = Spec((layers, 2, 1, tokens, heads, hidden // heads), BF16, where="pinned")
    return {"y": Spec((1, tokens, hidden), BF16), "kv": kv}


def work(layers, tokens, hidden, heads, ffn):
    """Products of all weights, and half of all scores."""
    weights = 4 * hidden * hidden + 3 * hidden * ffn
    return {"bf16": layers * tokens * (2 * weights + 2 * tokens * hidden), "d2h": layers * 4 * tokens * hidden}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=lambda x, weights, layers, hidden, heads, ffn: reference_run(weights, config_of(layers, hidden, heads, ffn), x),
    time_at={"layers": 8, "tokens": 4096, "hidden": 4096, "heads": 32, "ffn": 11008},
    cpu_at={"layers": 2, "tokens": 64, "hidden": 128, "heads": 2, "ffn": 256},
    check_at=(
        {"layers": 1, "tokens": 1, "hidden": 64, "heads": 1, "ffn": 96},
        {"layers": 2, "tokens": 33, "hidden": 128, "heads": 2, "ffn": 64},
        {"layers": 3, "tokens": 20, "hidden": 64, "heads": 2, "ffn": 128},
    ),
    work=work,
    rtol=0.02,
    atol=0.15,  # a residual stream of up to 16 additions, each rounded to BF16: 2^-9 of values of about 4
    constants=("weights",),
)
