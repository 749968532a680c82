"""A language model of bytes answers requests whose prompts branch as a tree does: a system text, one of its documents, a question.

The tree's texts are drawn anew for each trace. The model is that of ch15:prefix_caching, in float32 for the same reason: a wrong block
among 40 may move logits by as little as 0.002 standard deviations. At the timed shape it is byte_lm, grown to 755 million weights.
"""
# baseline: ch15/baseline_prefix_caching.py
# predicts: prefix_caching output_tokens_per_s 1779 = 1522 / (21610 * 1.51e9 / fp32_matmul + 198 * 1.1e-3) on h100  (0.526 known: simulated)

import torch
from shared_byte_requests import Branching, grown_inputs, trained_logits

from common import Serving, Slo, Traffic, Workload
from common.models.byte_server import arrivals_at


def inputs(rand, width, blocks, system, document, question, longest, **_):
    if 16 * blocks < (most := system + document + question + longest):
        raise ValueError(f"blocks={blocks}; expected at least {-(-most // 16)} of 16 tokens, what one request may take")
    return grown_inputs(rand, width, 0, torch.float32)


def traffic(requests, systems, documents, system, document, question, longest, arrival_poisson, **_):
    begin = system + document
    lengths = {"prompt_tokens": (begin + question // 2, begin + question), "output_tokens": (longest // 2, longest)}
    branching = Branching(systems, documents, system, document)
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(arrival_poisson), prompts=branching)


TREE = {"systems": 3, "documents": 5, "system": 384, "document": 256, "question": 96, "arrival_poisson": 0.0}
SMALL = {"systems": 2, "documents": 2, "system": 96, "document": 64, "question": 32, "arrival_poisson": 0.0}
TINY = {"systems": 1, "documents": 3, "system": 21, "document": 30, "question": 13, "arrival_poisson": 0.0}

WORKLOAD = Workload(
    inputs=inputs,
    # The bound of ch15:prefix_caching, for prompts of that length: 300 times the error on a CPU, a third of a stale block's least effect.
    serving=Serving(traffic, trained_logits, vocabulary=256, atol=5e-4, slo=Slo(ttft_ms=2000.0, tpot_ms=40.0)),
    time_at={**TREE, "requests": 64, "longest": 32, "slots": 8, "blocks": 640, "width": 16},
    cpu_at={**SMALL, "requests": 16, "longest": 12, "slots": 4, "blocks": 64, "width": 1},
    check_at=(
        {**SMALL, "requests": 6, "longest": 8, "slots": 2, "blocks": 26, "width": 1},  # evicts
        {**TINY, "requests": 5, "longest": 6, "slots": 3, "blocks": 40, "width": 4},
    ),
    constants=("weights",),
    ladder=("ch15/optimized_prefix_caching.py",),
    goal="output_tokens_per_s",
)
