"""Prefill attention over packed documents with a learned relative bias, as in T5: bf16.

Token i sees token j <= i of the same document. Its score gains bias[h, b(i - j)]: below 16 every distance has a bucket of its own, then
there are 16 more, each 1.5 times as wide as the one before. Documents are of different lengths, from 1 to `doc_span` tokens.
"""
# reason: the baseline computes all pairs of a document, of which the mask keeps half

import torch

from common import Spec, Workload

BF16 = torch.bfloat16
BUCKETS = 32


def bucket_of(behind):
    """The bucket of a distance of 0 or more: 0 to BUCKETS - 1."""
    wide = 16 + ((behind.clamp(min=16) / 16).log() / 0.4054651).int()  # ln 1.5
    return torch.where(behind < 16, behind, wide.clamp(max=BUCKETS - 1))


def lengths_of(tokens, doc_span):
    """The lengths of the documents, spread over 1 to `doc_span`; the last one is cut."""
    lengths = []
    while rest := tokens - sum(lengths):
        lengths.append(min(rest, 1 + (len(lengths) + 1) * 618 % 1000 * doc_span // 1000))
    return lengths


def inputs(rand, heads, tokens, doc_span, dim):
    """`bucket` has the bucket of every distance below `tokens`, `document` a number for every token; `bias` is [heads, BUCKETS]."""
    drawn = {name: rand.normal(1, heads, tokens, dim, dtype=BF16, std=2.0 if name == "q" else 1.0) for name in "qkv"}
    behind = torch.arange(tokens, device=drawn["q"].device)
    lengths = torch.tensor(lengths_of(tokens, doc_span), device=behind.device)
    document = torch.arange(1, len(lengths) + 1, device=behind.device).repeat_interleave(lengths, output_size=tokens)
    return drawn | {"bias": rand.normal(heads, BUCKETS, dtype=BF16), "bucket": bucket_of(behind).int(), "document": document.int()}


def pairs_of(tokens, doc_span):
    """How many pairs of a query and a key the mask keeps."""
    return sum(n * (n + 1) // 2 for n in lengths_of(tokens, doc_span))


def reference(q, k, v, bias, bucket, document):
    at = torch.arange(q.shape[2], device=q.device)
    behind = at[:, None] - at[None, :]
    hidden = (behind < 0) | (document[:, None] != document[None, :])
    buckets = bucket.long()[behind.clamp(min=0)]
    rows = []
    for query, key, value, own in zip(*(x.flatten(0, 1) for x in (q, k, v)), bias, strict=True):  # a head at a time
        scores = query @ key.T * query.shape[1] ** -0.5 + own[buckets]
        rows.append(scores.masked_fill_(hidden, -torch.inf).softmax(-1) @ value)
    return torch.stack(rows)[None]


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda heads, tokens, doc_span, dim: {"y": Spec((1, heads, tokens, dim), BF16)},
    reference=reference,
    time_at={"heads": 16, "tokens": 8192, "doc_span": 2048, "dim": 64},
    cpu_at=None,  # without matrix instructions for bf16, a CPU's products are the slow part
    check_at=(
        {"heads": 1, "tokens": 17, "doc_span": 9, "dim": 16},
        {"heads": 2, "tokens": 300, "doc_span": 130, "dim": 32},
    ),
    constants=("bucket", "document"),
    work=lambda heads, tokens, doc_span, dim: {
        "bf16": 4 * heads * dim * pairs_of(tokens, doc_span),
        "dram_read": 6 * heads * tokens * dim,
        "dram_write": 2 * heads * tokens * dim,
    },
    rtol=2.0**-7,  # shares and answers are rounded to bf16: 2^-9 each
    atol=0.02,
)
