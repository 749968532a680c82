"""A language model of bytes serves requests, and keeps figures for Prometheus: latencies, tokens' surprisal, and the GPU's gauges.

The weights are byte_lm's, grown 16 times as wide and to 8 layers so that they compute the same function. NVML is NVIDIA's library
that tells a GPU's power, clocks and memory; a scrape asks it, once at the end of a trace. On a CPU, psutil stands in for it.
"""

import torch
from shared_byte_requests import grown_inputs, text, trained_logits

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL


def inputs(rand, width, more_layers, **_):
    return grown_inputs(rand, width, more_layers, torch.bfloat16)


def traffic(requests, prompt, longest, **_):
    return Traffic(count=requests, prompt_tokens=(prompt // 4, prompt), output_tokens=(longest // 2, longest), prompts=text)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=2000.0, tpot_ms=10.0)),
    time_at={"requests": 48, "prompt": 32, "longest": 96, "slots": 16, "width": 16, "more_layers": 4},
    cpu_at={"requests": 12, "prompt": 32, "longest": 24, "slots": 4, "width": 1, "more_layers": 0},
    check_at=(
        {"requests": 5, "prompt": 32, "longest": 8, "slots": 2, "width": 1, "more_layers": 0},
        {"requests": 6, "prompt": 32, "longest": 16, "slots": 4, "width": 1, "more_layers": 1},
    ),
    constants=("weights",),
    goal="tpot_ms",
)
