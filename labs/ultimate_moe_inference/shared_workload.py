"""What every layer of the lab computes: a decode step of eight sequences through 2 of the 24 layers of gpt-oss-20b."""

import torch
from shared_attention import caches_of, repeated
from shared_gpt_oss import config_of, decode, one_by_one, weights_of

from common import Spec, Workload
from common.block_formats import mxfp4_drawn

BF16 = torch.bfloat16
SMALL = {"layers": 2, "hidden": 64, "heads": 8, "experts": 8, "sequences": 24}


def inputs(rand, layers, hidden, heads, experts, sequences, context):
    """Hidden states, weights with experts in MXFP4, each token's experts, and the keys and values of earlier tokens."""
    config = config_of(layers, hidden, heads, experts)
    rows = {"gate_up": 2 * hidden, "down": hidden}
    bias = {"dtype": BF16, "std": 0.5}
    cache = (layers, sequences, config.kv_heads, context, config.head_dim)
    return {
        "x": rand.normal(sequences, hidden, dtype=BF16),
        "weights": weights_of(rand, config),
        "packed": [
            {k: [*mxfp4_drawn(rand, experts, n, hidden), rand.normal(experts, n, **bias)] for k, n in rows.items()} for _ in range(layers)
        ],
        "chosen": rand.place(rand.normal(layers, sequences, experts).topk(4).indices, "device"),
        "keys": rand.normal(*cache, dtype=BF16),
        "values": rand.normal(*cache, dtype=BF16),
    }


def reference(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    """The step in plain arithmetic."""
    config = config_of(layers, hidden, heads, experts)
    caches, turn = caches_of(config, keys, values)
    return decode(config, x, weights, turn, chosen, repeated(config, weights, caches), one_by_one(config, packed))


def work(layers, hidden, heads, experts, sequences, context):
    """Attention's weights, and the packed ones of as many experts as differ in the mean."""
    used, attention = experts * (1 - (1 - 4 / experts) ** sequences), 64 * hidden * (2 * heads + heads // 4)
    flops = 2 * layers * sequences * (attention + 12 * hidden * hidden)
    return {"bf16": flops, "dram_read": layers * (used * 0.53125 * 3 * hidden * hidden + 2 * attention)}


def decoding(**more):
    """The workload; `more` are further fields of it."""
    return Workload(
        inputs=inputs,
        outputs=lambda layers, hidden, heads, experts, sequences, context: {"y": Spec((sequences, hidden), BF16)},
        reference=reference,
        constants=("weights", "packed", "keys", "values"),
        time_at={"layers": 2, "hidden": 2880, "heads": 64, "experts": 32, "sequences": 8, "context": 2048},
        cpu_at=None,  # a CPU has no graphs, and Triton's interpreter checks a kernel, it does not race
        check_at=(
            {**SMALL, "context": 5},
            {**SMALL, "context": 130},
            {**SMALL, "layers": 1, "hidden": 1056, "sequences": 2, "context": 40},
        ),
        work=work,
        clock="launch",
        rtol=2**-6,
        # A sequence's errors in bf16 deviate by 0.032 to 0.062, answers by 4.4; a run looks at two million. 6.5 of the largest.
        atol=0.4,
        **more,
    )
