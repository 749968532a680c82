"""A language model of bytes serves requests through `slots` sequences at a time. Most answers are short, a few long.

The weights are byte_lm's, trained on Python's standard library; prompts are its text. At the timed shape the model is 16 times as wide
and 8 layers deep, grown so that it computes the same function: the added weights cost what they cost and change no answer.
"""

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL, arrivals_at, grown_inputs, prompts, trained_logits


def inputs(rand, width, more_layers, **_):
    return grown_inputs(rand, width, more_layers)


def traffic(requests, prompt, longest, mean, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (max(1, mean // 6), longest), "output_mean": mean}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=2000.0, tpot_ms=10.0)),
    time_at={"requests": 208, "prompt": 32, "longest": 128, "mean": 24, "slots": 16, "width": 16, "more_layers": 4, "arrival_poisson": 0.0},
    cpu_at={"requests": 12, "prompt": 32, "longest": 48, "mean": 12, "slots": 4, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
    check_at=(
        {"requests": 5, "prompt": 32, "longest": 8, "mean": 4, "slots": 2, "width": 1, "more_layers": 0, "arrival_poisson": 0.0},
        {"requests": 6, "prompt": 32, "longest": 16, "mean": 6, "slots": 4, "width": 1, "more_layers": 1, "arrival_poisson": 0.0},
    ),
    constants=("weights",),
    goal="output_tokens_per_s",
)
