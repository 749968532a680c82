"""More requests come than an engine can answer in time: each should get its first token within `limit_ms`, which is the service level's.

At the timed shape the model is byte_lm, grown to 755 million weights.
"""

from shared_byte_server import ATOL, grown_inputs, traffic_of, trained_logits

from common import Serving, Slo, Workload

SMALL = {"slots": 2, "width": 1, "limit_ms": 100.0, "arrival_poisson": 0.0}

WORKLOAD = Workload(
    inputs=lambda rand, width, **_: grown_inputs(rand, width),
    serving=Serving(
        lambda requests, prompt, longest, arrival_poisson, **_: traffic_of(requests, prompt, longest, arrival_poisson),
        trained_logits,
        vocabulary=256,
        atol=ATOL,
        slo=Slo(ttft_ms=100.0, tpot_ms=20.0),
    ),
    time_at={"requests": 96, "prompt": 64, "longest": 128, "slots": 16, "width": 16, "limit_ms": 100.0, "arrival_poisson": 1.5},
    cpu_at={"requests": 24, "prompt": 64, "longest": 24, "slots": 4, "width": 1, "limit_ms": 100.0, "arrival_poisson": 1.5},
    check_at=({"requests": 6, "prompt": 40, "longest": 8, **SMALL}, {"requests": 5, "prompt": 35, "longest": 5, **SMALL}),
    constants=("weights",),
    goal="goodput",
)
