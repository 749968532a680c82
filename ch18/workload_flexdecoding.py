"""A decode step of one layer over a static cache: each sequence appends its newest key and value, and its query attends to what it has.

The cache has room for `capacity` tokens a sequence; sequences have `shortest` to `longest`, at least 1. Widths are those of Llama 3 8B.
"""
# predicts: sliced = 0.3125 x baseline  (5120 of 16384 tokens are read)

import torch
from shared_paged_cache import lengths_of

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, sequences, shortest, longest, capacity, heads, kv_heads, dim):
    cache = (sequences, kv_heads, capacity, dim)
    newest = (sequences, kv_heads, 1, dim)
    k = rand.normal(*newest, dtype=BF16)
    return {
        "q": rand.normal(sequences, heads, 1, dim, dtype=BF16, std=3.0),
        "k": k,
        "v": rand.normal(*newest, dtype=BF16),
        "keys": rand.normal(*cache, dtype=BF16),
        "values": rand.normal(*cache, dtype=BF16),
        "lengths": torch.tensor(lengths_of(sequences, shortest, longest), device=k.device),  # the newest token included
    }


def reference(q, k, v, keys, values, lengths):
    answers = []
    for i, length in enumerate(lengths.tolist()):
        key, value = (torch.cat((cache[i, :, : length - 1], new[i]), 1) for cache, new in ((keys, k), (values, v)))
        scores = q[i, :, 0].unflatten(0, (len(key), -1)) @ key.mT * q.shape[3] ** -0.5
        answers.append((scores.softmax(-1) @ value).flatten(0, 1)[:, None])
    return torch.stack(answers)


def work(sequences, shortest, longest, capacity, heads, kv_heads, dim):
    tokens = sum(lengths_of(sequences, shortest, longest))
    return {"bf16": 4 * tokens * heads * dim, "dram_read": 4 * tokens * kv_heads * dim}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, shortest, longest, capacity, heads, kv_heads, dim: {"y": Spec((sequences, heads, 1, dim), BF16)},
    reference=reference,
    in_place=("keys", "values"),
    time_at={"sequences": 32, "shortest": 1024, "longest": 5120, "capacity": 16384, "heads": 32, "kv_heads": 8, "dim": 128},
    cpu_at=None,
    check_at=(
        {"sequences": 1, "shortest": 1, "longest": 1, "capacity": 128, "heads": 2, "kv_heads": 1, "dim": 16},
        {"sequences": 7, "shortest": 2, "longest": 300, "capacity": 300, "heads": 8, "kv_heads": 2, "dim": 64},
        # Nine sequences: for a capacity of 512 or more per sequence, torch 2.11's code for a CPU does not compile.
        {"sequences": 9, "shortest": 17, "longest": 4097, "capacity": 4104, "heads": 2, "kv_heads": 1, "dim": 16},
    ),
    work=work,
    ladder=("sliced",),
    rtol=0.01,  # shares and answers are rounded to bf16: 2^-9 each, and the mean of many
    atol=0.02,
)
