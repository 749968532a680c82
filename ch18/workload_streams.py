"""A decode worker: a new request's prompt is computed while `sequences` running requests decode `steps` tokens each. Llama's widths.

Both use the same random weights. Tokens are given, not sampled, so that no answer hangs on a rounding in the step before. bf16.
"""

import torch
from shared_decode_step import plain_decode
from shared_prefill import config_of, weights_of

from common import Spec, Workload
from common.models.decoder import forward, shapes


def inputs(rand, layers, hidden, prompt, sequences, context, steps):
    config = config_of(layers, hidden)
    cache = (layers, sequences, context + steps, config.kv_heads, config.head_dim)
    return {
        "config": config,
        "weights": weights_of(config, rand),
        "prompted": rand.integers(prompt, low=0, high=config.vocabulary),
        "tokens": rand.integers(steps, sequences, low=0, high=config.vocabulary),
        "keys": rand.normal(*cache, dtype=config.dtype),
        "values": rand.normal(*cache, dtype=config.dtype),
    }


def reference(weights, config, prompted, tokens, keys, values, context):
    answers = []
    for step, ids in enumerate(tokens):
        answers += [plain_decode(weights, config, keys[:, i], values[:, i], ids[i], context + step) for i in range(len(ids))]
    return forward(weights, config, prompted)[-1], torch.stack(answers).unflatten(0, tokens.shape)


def work(layers, hidden, prompt, sequences, context, steps):
    config = config_of(layers, hidden)
    weights = sum(torch.Size(shape).numel() for name, shape in shapes(config).items() if name.startswith("layers"))
    cache = 2 * layers * sequences * context * config.kv_heads * config.head_dim
    return {"bf16": 2 * weights * (prompt + steps * sequences), "dram_read": 2 * (weights + cache) * steps}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda hidden, sequences, steps, **_: {
        name: Spec((*rows, 8 * hidden), torch.bfloat16) for name, rows in (("first", ()), ("logits", (steps, sequences)))
    },
    reference=reference,
    time_at={"layers": 4, "hidden": 4096, "prompt": 4096, "sequences": 16, "context": 2048, "steps": 12},
    check_at=(
        {"layers": 1, "hidden": 128, "prompt": 5, "sequences": 1, "context": 3, "steps": 1},
        {"layers": 2, "hidden": 128, "prompt": 64, "sequences": 2, "context": 17, "steps": 2},
    ),
    constants=("weights",),
    in_place=("keys", "values"),
    work=work,
    clock="launch",
    rtol=2.0**-7,  # bf16 rounds what each operator writes, and the layers carry that on in the residual stream
    atol=0.1,  # on an H100 the worst of 6 million errors was 0.08
)
