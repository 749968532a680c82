"""Four engines in processes of their own answer prompts of 32 to 512 bytes. Each has room for `slots` answers at a time.

The engines share one GPU, or a CPU. At the timed shape the model is byte_lm, grown to 755 million weights.
"""

from shared_byte_server import ATOL, grown_inputs, traffic_of, trained_logits

from common import Serving, Slo, Workload

SMALL = {"engines": 2, "slots": 1, "width": 1, "arrival_poisson": 0.0}

WORKLOAD = Workload(
    inputs=lambda rand, width, **_: grown_inputs(rand, width),
    serving=Serving(
        lambda requests, prompt, longest, arrival_poisson, **_: traffic_of(requests, prompt, longest, arrival_poisson),
        trained_logits,
        vocabulary=256,
        atol=ATOL,
        slo=Slo(ttft_ms=500.0, tpot_ms=20.0),
    ),
    time_at={"requests": 32, "prompt": 512, "longest": 64, "engines": 4, "slots": 2, "width": 16, "arrival_poisson": 0.8},
    cpu_at={"requests": 12, "prompt": 280, "longest": 16, "engines": 2, "slots": 1, "width": 1, "arrival_poisson": 0.8},
    check_at=({"requests": 6, "prompt": 300, "longest": 8, **SMALL}, {"requests": 5, "prompt": 280, "longest": 5, **SMALL}),
    constants=("weights",),
    goal="e2e_ms.p95",
)
