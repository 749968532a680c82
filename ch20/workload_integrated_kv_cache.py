"""Decode some tokens of a batch: attention of each new token's queries to all keys and values so far, in BF16, without projections.

Heads and their size are Llama-3-8B's. `past_keys` and `past_values` are what the prompt has left in the cache.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, batch, context, tokens, heads, kv_heads, dim):
    def drawn(*shape):
        return rand.normal(*shape, dim, dtype=BF16)

    return {
        "past_keys": drawn(batch, kv_heads, context),
        "past_values": drawn(batch, kv_heads, context),
        "q": drawn(tokens, batch, heads, 1),
        "k": drawn(tokens, batch, kv_heads, 1),
        "v": drawn(tokens, batch, kv_heads, 1),
    }


def reference(past_keys, past_values, q, k, v, heads, kv_heads, dim):
    """Attention to the past and to each token up to the own one, a sequence after the other; q [tokens, batch, heads, 1, dim]."""
    tokens, groups, found = len(q), heads // kv_heads, []
    future = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1)
    for b in range(q.shape[1]):
        queries = q[:, b, :, 0].unflatten(1, (kv_heads, groups)).permute(1, 0, 2, 3)  # [kv heads, tokens, groups, dim]
        keys, values = (torch.cat((past[b], new[:, b, :, 0].transpose(0, 1)), 1) for past, new in ((past_keys, k), (past_values, v)))
        scores = torch.einsum("htgd,hcd->htgc", queries, keys) * dim**-0.5
        scores[..., -tokens:].masked_fill_(future[None, :, None], -torch.inf)
        found.append(torch.einsum("htgc,hcd->thgd", scores.softmax(-1), values).flatten(1, 2))
    return torch.stack(found, 1)[:, :, :, None]


def work(batch, context, tokens, heads, kv_heads, dim):
    """Every cached element is read once a token."""
    cached = 2 * batch * kv_heads * dim * sum(context + t + 1 for t in range(tokens))
    return {"dram_read": 2 * cached, "dram_write": 2 * tokens * batch * heads * dim}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda batch, context, tokens, heads, kv_heads, dim: {"y": Spec((tokens, batch, heads, 1, dim), BF16)},
    reference=reference,
    time_at={"batch": 16, "context": 4096, "tokens": 8, "heads": 32, "kv_heads": 8, "dim": 128},  # a cache of 256 MiB
    cpu_at={"batch": 2, "context": 512, "tokens": 4, "heads": 4, "kv_heads": 2, "dim": 64},
    check_at=(
        {"batch": 1, "context": 1, "tokens": 3, "heads": 2, "kv_heads": 2, "dim": 16},
        {"batch": 3, "context": 17, "tokens": 1, "heads": 4, "kv_heads": 1, "dim": 32},
        {"batch": 2, "context": 40, "tokens": 5, "heads": 4, "kv_heads": 2, "dim": 64},
    ),
    work=work,
    rtol=2**-8,  # y is rounded to BF16
    atol=0.003,  # and so is each share of the softmax
    constants=("past_keys", "past_values"),
)
