"""A toy language model serves requests whose answers have different lengths."""

import torch
from shared_toy import HIDDEN, VOCABULARY, advance, logits_of

from common import Serving, Slo, Traffic, Workload


def inputs(rand, requests, longest, arrival_poisson, per_s):
    mix, _ = torch.linalg.qr(rand.normal(HIDDEN, HIDDEN))
    return {"weights": {"mix": mix, "embedding": rand.normal(VOCABULARY, HIDDEN), "head": rand.normal(HIDDEN, VOCABULARY)}}


def traffic(requests, longest, arrival_poisson, per_s):
    arrivals = ("of_saturation", arrival_poisson) if arrival_poisson else ("per_s", per_s) if per_s else "at_once"
    return Traffic(count=requests, prompt_tokens=(24, 40), output_tokens=(2, longest), shared_prefix=(2, 16), arrivals=arrivals)


def logits(weights, tokens, first):
    state = torch.zeros(1, HIDDEN, device=tokens.device)
    rows = []
    for position, token in enumerate(tokens):
        state = advance(weights, state, token[None])
        if position >= first:
            rows.append(logits_of(weights, state))
    return torch.cat(rows)


WORKLOAD = Workload(
    inputs=inputs,
    serving=Serving(traffic, logits, VOCABULARY, atol=1e-3, slo=Slo(ttft_ms=100.0, tpot_ms=5.0)),
    time_at={"requests": 64, "longest": 64, "arrival_poisson": 0.0, "per_s": 0.0},
    cpu_at={"requests": 16, "longest": 48, "arrival_poisson": 0.0, "per_s": 0.0},
    check_at=(
        {"requests": 5, "longest": 6, "arrival_poisson": 0.0, "per_s": 0.0},
        {"requests": 6, "longest": 8, "arrival_poisson": 0.0, "per_s": 100.0},
    ),
    constants=("weights",),
    goal="output_tokens_per_s",
)
