"""A language model of bytes serves requests, up to `slots` at a time, in one process on one GPU.

At the timed shape the model is byte_lm, grown to 3.0 billion weights in 16 layers.
"""

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL, arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, more_layers, **_):
    return grown_inputs(rand, width, more_layers)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 4, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=2000.0, tpot_ms=5.0)),
    time_at={"requests": 32, "prompt": 64, "longest": 96, "slots": 16, "width": 16, "more_layers": 12, "arrival_poisson": 0.0},
    cpu_at={"requests": 12, "prompt": 64, "longest": 24, "slots": 4, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
    check_at=(
        {"requests": 5, "prompt": 32, "longest": 8, "slots": 2, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
        {"requests": 6, "prompt": 31, "longest": 16, "slots": 4, "width": 1, "more_layers": 1, "arrival_poisson": 0.0},
    ),
    constants=("weights",),
    goal="tpot_ms",
)
