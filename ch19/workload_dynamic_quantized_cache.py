"""Decode attention: each sequence appends its newest token to a cache, and its query attends to all `context` tokens.

Heads and widths at the timed shape are those of Llama 3 8B. A query is like the key of one token, which takes most of the attention, as
where a model looks something up: half of the queries look for the newest token, half for any.
"""
# needs: fp8

import torch

from common import Precision, Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, sequences, context, hot, heads, kv_heads, dim):
    drawn = {name: rand.normal(sequences, kv_heads, dim, dtype=BF16) for name in "kv"}
    drawn |= {name: rand.normal(sequences, kv_heads, context, dim, dtype=BF16) for name in ("keys", "values")}
    at = rand.integers(sequences, heads, low=0, high=context)
    head = torch.arange(heads, device=at.device)
    newest = (head % 2 == 0) | (at == context - 1)
    group = heads // kv_heads
    row = torch.arange(sequences, device=at.device).unsqueeze(1) * kv_heads + head // group
    older = drawn["keys"].view(-1, dim).index_select(0, (row * context + at).flatten()).view(sequences, heads, dim)
    key = torch.where(newest.unsqueeze(-1), drawn["k"].repeat_interleave(group, dim=1), older)
    return {"q": 1.4 * key + rand.normal(sequences, heads, dim, dtype=BF16, std=0.2), **drawn}


def reference(q, k, v, keys, values, context):
    answers = []
    for query, key, value, older_keys, older_values in zip(q.unflatten(1, (k.shape[1], -1)), k, v, keys, values, strict=True):
        seen, mixed = (torch.cat((x[:, : context - 1], new[:, None]), 1) for x, new in ((older_keys, key), (older_values, value)))
        shares = (torch.einsum("hgd,htd->hgt", query, seen) * q.shape[2] ** -0.5).softmax(-1)
        answers.append(torch.einsum("hgt,htd->hgd", shares, mixed).flatten(0, 1))
    return torch.stack(answers)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, context, hot, heads, kv_heads, dim: {"y": Spec((sequences, heads, dim), BF16)},
    reference=reference,
    constants=("keys", "values"),
    time_at={"sequences": 8, "context": 32768, "hot": 1024, "heads": 32, "kv_heads": 8, "dim": 128},  # 1.07 GB in BF16
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"sequences": 1, "context": 1, "hot": 16, "heads": 1, "kv_heads": 1, "dim": 64},
        {"sequences": 4, "context": 17, "hot": 16, "heads": 8, "kv_heads": 2, "dim": 64},  # one old token
        {"sequences": 2, "context": 200, "hot": 70, "heads": 6, "kv_heads": 2, "dim": 64},  # parts of unequal lengths
    ),
    # In the precision that `changes` admits: 4 bits an element and a scale per token.
    work=lambda sequences, context, hot, heads, kv_heads, dim: {
        "bf16": 4 * sequences * context * heads * dim,
        "dram_read": 2 * sequences * context * kv_heads * (dim // 2 + 4),
    },
    rtol=0.01,
    atol=0.02,
    # An integer of 4 bits is off by a fourteenth of its row's largest element, which is seldom above 4.5; shares are off by a few percent.
    changes=Precision(rtol=0.1, atol=0.4),
    changed_by=("fp8", "optimized"),
    ladder=("fp8",),
)
