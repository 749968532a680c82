"""Decode attention over pages of keys and values: each of `sequences` has a query per head and a context of `context` tokens.

Pages have 64 tokens and lie in any order; the table says where. Four query heads of 128 share a head of keys, as in Mistral-7B. The last
page may be only partly of the context.
"""

import torch

from common import Spec, Workload

PAGE, GROUP, DIM = 64, 4, 128
BF16 = torch.bfloat16


def inputs(rand, sequences, kv_heads, context):
    each = -(-context // PAGE)
    cache = (sequences * each, kv_heads, PAGE, DIM)
    return {
        "q": rand.normal(sequences, kv_heads * GROUP, DIM, dtype=BF16, std=2.0),  # so that a few hundred tokens have most of the shares
        "keys": rand.normal(*cache, dtype=BF16),
        "values": rand.normal(*cache, dtype=BF16),
        "table": rand.permutation(sequences * each).to(torch.int32).view(sequences, each),
    }


def reference(q, keys, values, table, context):
    """A sequence after the other, so that all of it fits."""
    answers = []
    for query, pages in zip(q, table.long(), strict=True):
        k, v = (cache[pages].transpose(0, 1).flatten(1, 2)[:, :context] for cache in (keys, values))  # [kv_heads, context, DIM]
        shares = (query.unflatten(0, (-1, GROUP)) @ k.mT * DIM**-0.5).softmax(dim=-1)
        answers.append((shares @ v).flatten(0, 1))
    return torch.stack(answers)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, kv_heads, context: {"out": Spec((sequences, kv_heads * GROUP, DIM), torch.float32)},
    reference=reference,
    time_at={"sequences": 16, "kv_heads": 8, "context": 8192},  # a block per sequence and head of keys: 128, about one per SM
    check_at=(
        {"sequences": 1, "kv_heads": 1, "context": 1},
        {"sequences": 2, "kv_heads": 2, "context": 200},  # four pages, the last one of 8 tokens
        {"sequences": 3, "kv_heads": 1, "context": 64},
    ),
    work=lambda sequences, kv_heads, context: {"dram_read": 4 * sequences * kv_heads * context * DIM},
    rtol=1e-4,  # float32 throughout: a score of about 10 is off by some 1e-6, and so is each share
    atol=1e-5,
    constants=("keys", "values"),  # the pages of a cache; queries and the table change
)
