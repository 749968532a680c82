"""A language model of bytes answers requests whose prompts begin with one of a few long system prompts.

The model computes in float32: a wrong block among 40 may move logits by as little as 0.002 standard deviations,
and bfloat16 rounds by 0.09. At the timed shape it is byte_lm, grown to 755 million weights.
"""

import torch

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, blocks, prefix, question, longest, **_):
    if 16 * blocks < (most := prefix + question + longest):
        raise ValueError(f"blocks={blocks}; expected at least {-(-most // 16)} of 16 tokens, what one request may take")
    return grown_inputs(rand, width, 0, dtype=torch.float32)


def traffic(requests, groups, prefix, question, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prefix + question // 2, prefix + question), "output_tokens": (longest // 2, longest)}
    return Traffic(count=requests, **lengths, shared_prefix=(groups, prefix), arrivals=arrivals_at(arrival_poisson), prompts=prompts)


TIMED = {"requests": 48, "groups": 4, "prefix": 512, "question": 128, "longest": 32, "slots": 16, "blocks": 1024}
ON_CPU = {"requests": 12, "groups": 2, "prefix": 256, "question": 32, "longest": 16, "slots": 4, "blocks": 128}
EVICTING = {"requests": 8, "groups": 2, "prefix": 48, "question": 24, "longest": 12, "slots": 2, "blocks": 13}
UNALIGNED = {"requests": 5, "groups": 1, "prefix": 31, "question": 17, "longest": 8, "slots": 3, "blocks": 32}

WORKLOAD = Workload(
    inputs=inputs,
    # On a CPU logits are off by 5e-6 at the most. The smallest effect of a stale block in eight prompts of 1568 tokens was 0.0016.
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=5e-4, slo=Slo(ttft_ms=40.0, tpot_ms=10.0)),
    time_at={**TIMED, "width": 16, "arrival_poisson": 0.5},
    cpu_at={**ON_CPU, "width": 1, "arrival_poisson": 0.5},
    check_at=({**EVICTING, "width": 1, "arrival_poisson": 0.0}, {**UNALIGNED, "width": 4, "arrival_poisson": 0.0}),
    constants=("weights",),
    goal="ttft_ms",
)
