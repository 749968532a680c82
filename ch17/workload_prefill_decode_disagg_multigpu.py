"""Waves of requests on several GPUs: their prompts run through layers of Llama-2-7B's form, then `steps` tokens follow, one at a time.

Every rank has requests of its own and all weights. The tokens that follow are given, as hidden states, so that answers do not hang on an
argmax: `y` is [waves, batch, steps, hidden], what the layers say behind each.
"""

import torch
from shared_layers import reference_run
from shared_weights import BF16, config_of, draw

from common import Spec, Workload


def inputs(rand, rank, waves, batch, tokens, steps, layers, hidden, heads, ffn):
    mine = rand.of_rank(rank)
    return {
        "prompts": mine.normal(waves, batch, tokens, hidden, dtype=BF16),
        "following": mine.normal(waves, batch, steps, hidden, dtype=BF16),
        "weights": draw(rand, layers, hidden, ffn),
    }


def reference(prompts, following, weights, tokens, layers, hidden, heads, ffn):
    config = config_of(layers, hidden, heads, ffn)
    whole = torch.cat((prompts, following), dim=2)
    return torch.stack([reference_run(weights, config, wave)[0][:, tokens:] for wave in whole])


def work(waves, batch, tokens, steps, layers, hidden, heads, ffn):
    """A rank's share: the products of its prompts, and the weights read for half of the steps, since two ranks can share them."""
    weights = layers * (4 * hidden * hidden + 3 * hidden * ffn)
    return {"bf16": 2 * waves * batch * tokens * weights, "dram_read": waves * steps * weights}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda waves, batch, tokens, steps, layers, hidden, heads, ffn: {"y": Spec((waves, batch, steps, hidden), BF16)},
    reference=reference,
    ranks=(2, 4),
    time_at={"waves": 6, "batch": 4, "tokens": 384, "steps": 16, "layers": 4, "hidden": 4096, "heads": 32, "ffn": 11008},
    check_at=(
        {"waves": 1, "batch": 1, "tokens": 3, "steps": 1, "layers": 1, "hidden": 64, "heads": 1, "ffn": 96},
        {"waves": 3, "batch": 2, "tokens": 9, "steps": 3, "layers": 2, "hidden": 128, "heads": 2, "ffn": 64},
        {"waves": 2, "batch": 3, "tokens": 17, "steps": 4, "layers": 2, "hidden": 64, "heads": 2, "ffn": 64},
    ),
    work=work,
    rtol=0.02,
    atol=0.1,  # a residual stream of up to 8 additions, each rounded to BF16: 2^-9 of values of about 3
    constants=("weights",),
)
