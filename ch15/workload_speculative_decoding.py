"""A language model of bytes serves a few requests at a time; the optimized side may use a model of a tenth of its size.

Both were trained on Python's standard library. At the timed shape the larger one is grown to 6.8 billion weights, the draft is as trained.
"""

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import ATOL, arrivals_at, grown_inputs, prompts, trained_logits
from common.models.config import byte_lm_draft


def inputs(rand, width, more_layers, intermediate, **_):
    target = grown_inputs(rand, width, more_layers, intermediate)
    return {**target, "draft_config": byte_lm_draft(), "draft_weights": rand.asset("byte_lm_draft")}


def traffic(requests, prompt, longest, arrival_poisson, **_):
    lengths = {"prompt_tokens": (prompt // 2, prompt), "output_tokens": (longest // 2, longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=prompts)


LARGE = {"width": 16, "more_layers": 4, "intermediate": 65536}
SMALL = {"width": 1, "more_layers": 0, "intermediate": 704}

WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=ATOL, slo=Slo(ttft_ms=1000.0, tpot_ms=5.0)),
    time_at={"requests": 16, "prompt": 48, "longest": 128, "slots": 4, "drafts": 4, "arrival_poisson": 0.0, **LARGE},
    cpu_at={"requests": 6, "prompt": 32, "longest": 48, "slots": 2, "drafts": 4, "arrival_poisson": 0.0, **SMALL},
    check_at=(
        {"requests": 5, "prompt": 40, "longest": 14, "slots": 2, "drafts": 3, "arrival_poisson": 0.0, **SMALL},
        {"requests": 6, "prompt": 33, "longest": 9, "slots": 4, "drafts": 6, "arrival_poisson": 0.0, **SMALL, "width": 4},
    ),
    constants=("weights", "draft_weights"),
    goal="tpot_ms",
)
