"""A language model of bytes serves requests, and keeps figures for Prometheus: latencies, tokens' surprisal, and the GPU's gauges.

The weights are byte_lm's, grown 16 times as wide and to 8 layers so that they compute the same function. NVML is NVIDIA's library
that tells a GPU's power, clocks and memory; a scrape asks it, once at the end of a trace. On a CPU, psutil stands in for it.
"""

import torch
from shared_byte_requests import grown_inputs, text, trained_logits

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL, arrivals_at


def inputs(rand, width, more_layers, **_):
    return grown_inputs(rand, width, more_layers, torch.bfloat16)


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 4, prompt), "output_tokens": (longest // 2, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=text)


def shape(requests, longest, slots, width, more_layers):
    """Prompts of up to 32 bytes, all at once: `arrival_poisson` is then 0."""
    entries = {"requests": requests, "prompt": 32, "longest": longest, "slots": slots, "width": width, "more_layers": more_layers}
    return {**entries, "arrival_poisson": 0.0}


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=2000.0, tpot_ms=10.0)),
    time_at=shape(requests=48, longest=96, slots=16, width=16, more_layers=4),
    cpu_at=shape(requests=12, longest=24, slots=4, width=1, more_layers=0),
    check_at=(
        shape(requests=5, longest=8, slots=2, width=1, more_layers=0),
        shape(requests=6, longest=16, slots=4, width=1, more_layers=1),
    ),
    constants=("weights",),
    goal="tpot_ms",
)
