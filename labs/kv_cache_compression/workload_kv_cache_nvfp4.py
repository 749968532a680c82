"""Decode attention over paged keys and values: each sequence appends its newest token, and its query attends to all `context` tokens.

Pages have 16 tokens and lie in any order; the table says where. Heads and widths at the timed shape are those of Llama 3 8B.
A query is like the key of one token, which takes most of the attention, as where a model looks something up.
"""

import torch
from shared_paged_decode import PAGE

from common import Precision, Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, sequences, context, heads, kv_heads, dim):
    """Pages are [pages, kv_heads, PAGE tokens, dim]; `table` [sequences, pages of a sequence]."""
    pages = -(-context // PAGE)
    cache = (sequences * pages, kv_heads, PAGE, dim)
    drawn = {name: rand.normal(sequences, kv_heads, dim, dtype=BF16) for name in "kv"}
    drawn |= {name: rand.normal(*cache, dtype=BF16) for name in ("keys", "values")}
    table = rand.permutation(sequences * pages, dtype=torch.int32).view(sequences, pages)
    group = heads // kv_heads
    at = rand.integers(sequences, heads, low=0, high=context)
    head = torch.arange(heads, device=at.device)
    newest = (head % group == 0) | (at == context - 1)  # one query of a group looks for the newest token
    slot = (table.long().gather(1, at // PAGE) * kv_heads + head // group) * PAGE + at % PAGE
    older = drawn["keys"].view(-1, dim).index_select(0, slot.flatten()).view(sequences, heads, dim)
    key = torch.where(newest.unsqueeze(-1), drawn["k"].repeat_interleave(group, dim=1), older)
    q = 1.4 * key + rand.normal(sequences, heads, dim, dtype=BF16, std=0.2)
    return {"q": q, **drawn, "table": table}


def reference(q, k, v, keys, values, table, context):
    answers = []
    for query, key, value, pages in zip(q.unflatten(1, (k.shape[1], -1)), k, v, table.long(), strict=True):
        older = [x[pages].transpose(1, 2).flatten(0, 1)[: context - 1] for x in (keys, values)]  # [tokens, kv heads, dim]
        seen, mixed = torch.cat((older[0], key[None])), torch.cat((older[1], value[None]))
        shares = (torch.einsum("hgd,thd->hgt", query, seen) * q.shape[2] ** -0.5).softmax(-1)
        answers.append(torch.einsum("hgt,thd->hgd", shares, mixed).flatten(0, 1))
    return torch.stack(answers)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, context, heads, kv_heads, dim: {"y": Spec((sequences, heads, dim), BF16)},
    reference=reference,
    constants=("keys", "values", "table"),
    time_at={"sequences": 8, "context": 32768, "heads": 32, "kv_heads": 8, "dim": 128},  # 1.07 GB in bf16
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"sequences": 1, "context": 1, "heads": 1, "kv_heads": 1, "dim": 64},
        {"sequences": 4, "context": 17, "heads": 8, "kv_heads": 2, "dim": 64},  # a page with one token
        {"sequences": 4, "context": 136, "heads": 24, "kv_heads": 2, "dim": 64},  # parts of unequal lengths
    ),
    # In the precision that `changes` admits: half a byte an element, and a byte per 16 of them.
    work=lambda sequences, context, heads, kv_heads, dim: {
        "bf16": 4 * sequences * context * heads * dim,
        "dram_read": 2 * sequences * context * kv_heads * (dim // 2 + dim // 16),
    },
    rtol=0.01,
    atol=0.02,
    # Between 4 and 6 times its block's scale a value is off by up to a sixth of the block's largest, which is seldom above 3.5.
    changes=Precision(rtol=0.1, atol=0.5),
)
