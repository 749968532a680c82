"""A language model of bytes answers requests with long prompts, which come while others are being answered.

The model computes in float32, so that one wrong block of a prompt's 40 can be told from rounding. At the timed shape it is byte_lm, grown
to 755 million weights. An engine that mixes both takes at most `budget` tokens of prompts per step: the largest power of two whose step is
predicted to meet the 5 ms per token of the objective.
"""

import torch

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, **_):
    return grown_inputs(rand, width, 0, dtype=torch.float32)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt * 4 // 5, prompt), "output_tokens": (longest // 4, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    # On a CPU logits are off by 5e-6 at the most. The smallest effect of a stale block in eight prompts of 1568 tokens was 0.0016.
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=5e-4, slo=Slo(ttft_ms=100.0, tpot_ms=5.0)),
    time_at={
        "requests": 24,
        "prompt": 640,
        "longest": 64,
        "slots": 16,
        "budget": 64,
        "decode_sms": 32,
        "width": 16,
        "arrival_poisson": 0.6,
    },
    cpu_at={"requests": 10, "prompt": 160, "longest": 24, "slots": 4, "budget": 32, "decode_sms": 32, "width": 1, "arrival_poisson": 0.6},
    check_at=(
        {"requests": 6, "prompt": 40, "longest": 8, "slots": 2, "budget": 16, "decode_sms": 8, "width": 1, "arrival_poisson": 0.0},
        {"requests": 5, "prompt": 35, "longest": 7, "slots": 4, "budget": 8, "decode_sms": 64, "width": 4, "arrival_poisson": 0.0},
    ),
    constants=("weights",),
    goal="itl_ms.p95",
)
