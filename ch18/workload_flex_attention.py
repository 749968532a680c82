"""Prefill attention over packed documents: a token sees the earlier tokens of its document, and of those the last `window`. bf16.

A sequence of `tokens` holds `documents` of unequal lengths, one after the other. `document` has the number of each token's document.
A token sees itself: `window` is at least 1.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def lengths_of(tokens, documents):
    """Lengths in the ratio 1 : 2 : ... : documents, the longest first."""
    ends = [tokens * (i + 1) * (2 * documents - i) // (documents * (documents + 1)) for i in range(documents)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def pairs_of(tokens, documents, window):
    """How many pairs of a query and a key the mask keeps."""
    return sum(sum(min(i + 1, window) for i in range(length)) for length in lengths_of(tokens, documents))


def inputs(rand, heads, tokens, documents, window, dim):
    lengths = lengths_of(tokens, documents)
    document = torch.cat([torch.full((length,), 1 + i, dtype=torch.int32) for i, length in enumerate(lengths)])
    drawn = {name: rand.normal(1, heads, tokens, dim, dtype=BF16, std=2.0 if name == "q" else 1.0) for name in "qkv"}
    return drawn | {"document": document.to(drawn["q"].device)}


def reference(q, k, v, document, window):
    at = torch.arange(len(document), device=document.device)
    behind = at[:, None] - at[None, :]
    seen = (document[:, None] == document[None, :]) & (behind >= 0) & (behind < window)
    heads = zip(*(x.flatten(0, 1) for x in (q, k, v)), strict=True)  # one at a time: in float64 its scores are 2 GB
    return torch.stack([(q @ k.T * q.shape[1] ** -0.5).masked_fill_(~seen, -torch.inf).softmax(-1) @ v for q, k, v in heads])[None]


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda heads, tokens, documents, window, dim: {"y": Spec((1, heads, tokens, dim), BF16)},
    reference=reference,
    time_at={"heads": 16, "tokens": 16384, "documents": 8, "window": 2048, "dim": 128},
    cpu_at=None,  # without matrix instructions for bf16, a CPU's products are the slow part, not its masks
    check_at=(
        {"heads": 1, "tokens": 17, "documents": 2, "window": 100, "dim": 16},
        {"heads": 2, "tokens": 300, "documents": 3, "window": 40, "dim": 64},
        {"heads": 1, "tokens": 1, "documents": 1, "window": 1, "dim": 16},
        {"heads": 1, "tokens": 4097, "documents": 3, "window": 300, "dim": 16},
    ),
    constants=("document",),
    work=lambda heads, tokens, documents, window, dim: {
        "bf16": 4 * heads * dim * pairs_of(tokens, documents, window),
        "dram_read": 6 * heads * tokens * dim,
        "dram_write": 2 * heads * tokens * dim,
    },
    rtol=2.0**-7,  # shares and answers are rounded to bf16: 2^-9 each
    atol=0.02,
)
