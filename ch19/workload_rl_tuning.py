"""A language model of bytes serves requests with prompts longer than their answers, through `slots` sequences at a time.

How many tokens of prompts a step takes is a knob: a sound default, a bandit's choice, or in the variant `fixed` the shape's `budget`.
"""

import torch
from shared_byte_text import grown_inputs, prompts, trained_logits

from common import Serving, Slo, Traffic, Workload


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 4, longest)}
    arrivals = ("of_saturation", arrival_poisson) if arrival_poisson else "at_once"
    return Traffic(count=requests, **lengths, arrivals=arrivals, prompts=prompts)


WORKLOAD = Workload(
    inputs=lambda rand, width, **_: grown_inputs(rand, width, dtype=torch.float32),
    # On a CPU logits of float32 are off by 5e-6 at the most; a stale block of a long prompt changes as little as 0.0016.
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=5e-4, slo=Slo(ttft_ms=2000.0, tpot_ms=20.0)),
    time_at={"requests": 128, "prompt": 768, "longest": 48, "slots": 16, "budget": 1024, "arrival_poisson": 0.0, "width": 4},
    cpu_at={"requests": 12, "prompt": 96, "longest": 16, "slots": 4, "budget": 256, "arrival_poisson": 0.0, "width": 1},
    check_at=(
        {"requests": 5, "prompt": 40, "longest": 8, "slots": 3, "budget": 16, "arrival_poisson": 0.0, "width": 1},
        {"requests": 6, "prompt": 64, "longest": 12, "slots": 4, "budget": 64, "arrival_poisson": 0.0, "width": 1},
    ),
    constants=("weights",),
    goal="output_tokens_per_s",
)
