"""A language model of bytes serves four requests at a time, greedily; the answers are those of its bf16 weights.

It was trained on Python's standard library. At the timed shape it is grown to 6.8 billion weights, 94 % of them in feed-forwards.
"""
# needs: fp8

from shared_self_draft import inputs, traffic

from common import Serving, Slo, Workload
from common.models.byte_server import ATOL, trained_logits

LARGE = {"width": 16, "more_layers": 4, "intermediate": 65536}
SMALL = {"width": 1, "more_layers": 0, "intermediate": 704}

# Prompts are short and answers long: in a long prompt a stale block of the cache changes too little for the judge to see.
WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=1000.0, tpot_ms=5.0)),
    time_at={"requests": 16, "prompt": 48, "longest": 128, "slots": 4, "arrival_poisson": 0.0, **LARGE},
    cpu_at={"requests": 6, "prompt": 32, "longest": 64, "slots": 2, "arrival_poisson": 0.0, **SMALL},
    check_at=(
        {"requests": 5, "prompt": 40, "longest": 64, "slots": 2, "arrival_poisson": 0.0, **SMALL},
        {"requests": 6, "prompt": 33, "longest": 64, "slots": 4, "arrival_poisson": 0.0, **SMALL, "width": 4},
    ),
    constants=("weights",),
    goal="tpot_ms",
)
