"""A language model of bytes serves long prompts among short ones: an engine of `slots` sequences with paged keys and values.

The model computes in float32, so that one wrong block of a prompt's 96 can be told from rounding. At the timed shape it is byte_lm, grown
to 755 million weights. A step takes at most `budget` tokens where the side schedules chunks. `arrival_poisson` is the load, as a share of
saturation.
"""

import torch

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, **_):
    return grown_inputs(rand, width, 0, dtype=torch.float32)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 4, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    # On a CPU logits are off by 5e-6 at the most. The smallest effect of a stale block in eight prompts of 1568 tokens was 0.0016.
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=5e-4, slo=Slo(ttft_ms=2000.0, tpot_ms=20.0)),
    time_at={"requests": 64, "prompt": 1536, "longest": 96, "slots": 16, "budget": 256, "arrival_poisson": 0.8, "width": 16},
    cpu_at={"requests": 8, "prompt": 64, "longest": 16, "slots": 4, "budget": 16, "arrival_poisson": 0.0, "width": 1},
    check_at=(
        {"requests": 5, "prompt": 40, "longest": 8, "slots": 3, "budget": 12, "arrival_poisson": 0.0, "width": 1},
        {"requests": 6, "prompt": 64, "longest": 12, "slots": 4, "budget": 32, "arrival_poisson": 0.0, "width": 1},
    ),
    constants=("weights",),
    goal="itl_ms.p95",
)
