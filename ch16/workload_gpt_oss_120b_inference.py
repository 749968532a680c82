"""Eight sequences decode a token each through layers of gpt-oss-120b: its published shapes, but 2 of its 36 layers, and random weights.

Experts come in MXFP4, as published: 4 bits a weight and a power of two for each 32. All their values exist in bf16, so both sides
compute the same. Which experts a token takes is an input, or rounding might choose another one; the router's shares are computed.
"""

import torch
from shared_gpt_oss import decoder
from shared_gpt_oss_layers import config_of, one_by_one, weights_of

from common import Spec, Workload
from common.block_formats import mxfp4_drawn

BF16 = torch.bfloat16
SMALL = {"layers": 2, "hidden": 64, "heads": 8, "experts": 8, "sequences": 24}


def inputs(rand, layers, hidden, heads, experts, sequences, context):
    config = config_of(layers, hidden, heads, experts)
    rows = {"gate_up": 2 * hidden, "down": hidden}
    return {
        "x": rand.normal(sequences, hidden, dtype=BF16),
        "weights": weights_of(rand, config),
        "packed": [
            {k: [*mxfp4_drawn(rand, experts, n, hidden), rand.normal(experts, n, dtype=BF16, std=0.5)] for k, n in rows.items()}
            for _ in range(layers)
        ],
        "chosen": rand.place(rand.normal(layers, sequences, experts).topk(4).indices, "device"),
        "keys": rand.normal(layers, sequences, config.kv_heads, context, config.head_dim, dtype=BF16),
        "values": rand.normal(layers, sequences, config.kv_heads, context, config.head_dim, dtype=BF16),
    }


def reference(x, weights, packed, chosen, keys, values, layers, hidden, heads, experts):
    return decoder(config_of(layers, hidden, heads, experts), x, weights, chosen, keys, values, lambda *given: one_by_one(packed, *given))()


def work(layers, hidden, heads, experts, sequences, context):
    """Attention's weights, keys and values within each layer's window, and the packed weights of the experts that differ, in the mean."""
    config = config_of(layers, hidden, heads, experts)
    used, attention = experts * (1 - (1 - 4 / experts) ** sequences), 64 * hidden * (2 * heads + heads // 4)
    seen = sum(min(context, (config.window_of(layer) or context + 1) - 1) for layer in range(layers))
    cache = 2 * sequences * config.kv_heads * config.head_dim * seen  # values
    flops = 2 * layers * sequences * (attention + 12 * hidden * hidden) + 2 * cache * heads // config.kv_heads
    return {"bf16": flops, "dram_read": layers * (used * 0.53125 * 3 * hidden * hidden + 2 * attention) + 2 * cache}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, hidden, heads, experts, sequences, context: {"y": Spec((sequences, hidden), BF16)},
    reference=reference,
    constants=("weights", "packed", "keys", "values"),
    time_at={"layers": 2, "hidden": 2880, "heads": 64, "experts": 128, "sequences": 8, "context": 2048},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=({**SMALL, "context": 5}, {**SMALL, "context": 130}, {**SMALL, "layers": 1, "hidden": 1056, "sequences": 2, "context": 40}),
    work=work,
    rtol=2**-6,
    # A sequence's errors in bf16 deviate by 0.032 to 0.062, answers by 4.4; a run looks at two million. 6.5 of the largest.
    atol=0.4,
)
