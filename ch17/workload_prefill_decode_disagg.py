"""Requests with long prompts come while others are being answered; a token that a client waits for should not wait for their prompts.

Engines are processes that share one GPU, or a CPU. At the timed shape the model is byte_lm, grown to 755 million weights. An engine
that does both takes at most `budget` tokens of prompts per step: the largest power of two whose step is predicted to meet the objective's
10 ms per token.
"""

from shared_byte_server import ATOL, grown_inputs, prompts, trained_logits

from common import Serving, Slo, Traffic, Workload

SMALL = {"slots": 2, "budget": 16, "width": 1, "arrival_poisson": 0.0}


def traffic(requests, prompt, longest, arrival_poisson, **_):
    """Prompts of 4/5 of `prompt` to `prompt` bytes, answers of `longest` / 4 to `longest`."""
    lengths = {"prompt_tokens": (prompt * 4 // 5, prompt), "output_tokens": (max(1, longest // 4), longest)}
    return Traffic(
        count=requests, **lengths, arrivals=("of_saturation", arrival_poisson) if arrival_poisson else "at_once", prompts=prompts
    )


WORKLOAD = Workload(
    inputs=lambda rand, width, **_: grown_inputs(rand, width),
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=500.0, tpot_ms=10.0)),
    time_at={"requests": 48, "prompt": 1024, "longest": 64, "slots": 16, "budget": 256, "width": 16, "arrival_poisson": 0.6},
    cpu_at={"requests": 10, "prompt": 160, "longest": 24, "slots": 4, "budget": 64, "width": 1, "arrival_poisson": 0.6},
    check_at=({"requests": 6, "prompt": 60, "longest": 8, **SMALL}, {"requests": 5, "prompt": 35, "longest": 5, **SMALL}),
    constants=("weights",),
    goal="itl_ms.p95",
)
