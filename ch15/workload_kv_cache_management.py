"""A language model of bytes serves requests with `budget` tokens of keys and values in memory; nobody knows how long an answer will be.

At the timed shape the model is byte_lm, grown to 3.4 billion weights: a step reads 6.8 GB, so it costs the same for 8 sequences and for 20.
"""

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL, arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, more_layers, intermediate, budget, prompt, longest, **_):
    if budget < prompt + longest:
        raise ValueError(f"budget={budget}; expected at least {prompt + longest} tokens, what one request may take")
    return grown_inputs(rand, width, more_layers, intermediate)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 16, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


LARGE = {"width": 16, "more_layers": 0, "intermediate": 65536}
SMALL = {"width": 1, "more_layers": 0, "intermediate": 704}

WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=2000.0, tpot_ms=10.0)),
    time_at={"requests": 48, "prompt": 32, "longest": 128, "budget": 1280, "arrival_poisson": 0.0, **LARGE},
    cpu_at={"requests": 16, "prompt": 32, "longest": 32, "budget": 256, "arrival_poisson": 0.0, **SMALL},
    check_at=(
        {"requests": 8, "prompt": 32, "longest": 32, "budget": 80, "arrival_poisson": 0.0, **SMALL},  # preempts
        {"requests": 5, "prompt": 20, "longest": 17, "budget": 100, "arrival_poisson": 0.0, **SMALL, "intermediate": 1000},
    ),
    constants=("weights",),
    goal="output_tokens_per_s",
)
