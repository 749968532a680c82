"""Two engines in processes of their own answer prompts of 32 to 1024 bytes, 23 % of which are at most 256 bytes long.

The engines share one GPU, or a CPU. At the timed shape the model is byte_lm, grown to 755 million weights.
"""
# predicts: in_turn ttft_ms.p95 = 0.58 x baseline  (as the optimized side, by simulation)

from shared_byte_server import ATOL, grown_inputs, traffic_of, trained_logits

from common import Serving, Slo, Workload

SMALL = {"slots": 2, "width": 1, "arrival_poisson": 0.0}

WORKLOAD = Workload(
    inputs=lambda rand, width, **_: grown_inputs(rand, width),
    serving=Serving(
        lambda requests, prompt, longest, arrival_poisson, **_: traffic_of(requests, prompt, longest, arrival_poisson),
        trained_logits,
        vocabulary=256,
        atol=ATOL,
        slo=Slo(ttft_ms=500.0, tpot_ms=20.0),
    ),
    time_at={"requests": 40, "prompt": 1024, "longest": 32, "slots": 4, "width": 16, "arrival_poisson": 0.9},
    cpu_at={"requests": 16, "prompt": 320, "longest": 24, "slots": 2, "width": 1, "arrival_poisson": 0.9},
    check_at=({"requests": 6, "prompt": 300, "longest": 8, **SMALL}, {"requests": 5, "prompt": 280, "longest": 5, **SMALL}),
    constants=("weights",),
    ladder=("in_turn",),
    goal="ttft_ms.p95",
)
