"""The end of a decode step for a batch of requests: attention over paged keys and values, RMSNorm, and logits. Llama 3 8B's widths.

`same` is where a side tells which share of all logits has the same bits when each request is decoded alone, with a table of its own pages.
Lengths are at least 1.
"""

import shared_paged_cache as paged
import torch

from common import Metric, Spec, Workload


def inputs(rand, vocabulary, heads, dim, **shape):
    width = heads * dim
    cache = paged.inputs(rand, heads=heads, dim=dim, **shape)
    head = rand.normal(vocabulary, width, dtype=torch.bfloat16, std=width**-0.5)
    return cache | {"head": head, "same": rand.uniform(1)}


def reference(q, keys, values, table, lengths, head):
    x = paged.reference(q, keys, values, table, lengths).flatten(1)
    return torch.nn.functional.rms_norm(x, x.shape[1:], eps=1e-5) @ head.T


def work(sequences, shortest, longest, heads, kv_heads, dim, vocabulary):
    least = paged.work(sequences, shortest, longest, heads, kv_heads, dim)
    products = 2 * sequences * heads * dim * vocabulary
    return {"bf16": least["bf16"] + products, "dram_read": least["dram_read"] + 2 * heads * dim * vocabulary}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, vocabulary, **_: {"logits": Spec((sequences, vocabulary), torch.bfloat16)},
    reference=reference,
    constants=("keys", "values", "table", "lengths", "head"),
    in_place=("same",),
    metrics=lambda same: {"same_logits": Metric(same.item(), "share", "higher")},
    goal="same_logits",
    time_at={"sequences": 16, "shortest": 256, "longest": 16384, "heads": 32, "kv_heads": 8, "dim": 128, "vocabulary": 128256},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"sequences": 1, "shortest": 3, "longest": 3, "heads": 2, "kv_heads": 1, "dim": 16, "vocabulary": 33},
        {"sequences": 3, "shortest": 7, "longest": 200, "heads": 8, "kv_heads": 2, "dim": 32, "vocabulary": 100},
        {"sequences": 1, "shortest": 1, "longest": 1, "heads": 2, "kv_heads": 1, "dim": 16, "vocabulary": 33},
        {"sequences": 2, "shortest": 17, "longest": 4097, "heads": 2, "kv_heads": 1, "dim": 64, "vocabulary": 100},
    ),
    work=work,
    rtol=2.0**-7,  # answers of attention are rounded to bf16, and so are logits, of unit scale
    atol=0.02,
)
