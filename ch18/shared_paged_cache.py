"""Paged keys and values of sequences, the lengths they have, and the slow answer of decode attention over them."""

import torch

from common import Spec

PAGE = 16  # tokens
BF16 = torch.bfloat16


def lengths_of(sequences, shortest, longest):
    """The tokens of each sequence: evenly spaced from `shortest` to `longest`, the longest last."""
    return [longest - (longest - shortest) * (sequences - 1 - i) // max(sequences - 1, 1) for i in range(sequences)]


def inputs(rand, sequences, shortest, longest, heads, kv_heads, dim):
    """Queries are scaled so that a few tokens take most of the attention, as in trained models, at any length of context."""
    lengths = lengths_of(sequences, shortest, longest)
    pages = [-(-length // PAGE) for length in lengths]
    order = rand.permutation(sum(pages), dtype=torch.int32)
    # What is behind a sequence's own pages is never its own: page 0 of the pool.
    table = [torch.nn.functional.pad(own, (0, pages[-1] - len(own))) for own in order.split(pages)]
    return {
        "q": rand.normal(sequences, heads, dim, dtype=BF16, std=3.0),
        "keys": rand.normal(sum(pages), PAGE, kv_heads, dim, dtype=BF16),
        "values": rand.normal(sum(pages), PAGE, kv_heads, dim, dtype=BF16),
        "table": torch.stack(table),
        "lengths": torch.tensor(lengths, dtype=torch.int32, device=order.device),
    }


def outputs(sequences, shortest, longest, heads, kv_heads, dim):
    return {"y": Spec((sequences, heads, dim), BF16)}


def reference(q, keys, values, table, lengths):
    answers = []
    for query, pages, length in zip(q.unflatten(1, (keys.shape[2], -1)), table.long(), lengths.tolist(), strict=True):
        key, value = (x[pages].flatten(0, 1)[:length] for x in (keys, values))  # [tokens, kv heads, dim]
        shares = (torch.einsum("hgd,thd->hgt", query, key) * q.shape[2] ** -0.5).softmax(-1)
        answers.append(torch.einsum("hgt,thd->hgd", shares, value).flatten(0, 1))
    return torch.stack(answers)


def work(sequences, shortest, longest, heads, kv_heads, dim):
    """Keys and values once, 2 bytes an element; two products."""
    tokens = sum(lengths_of(sequences, shortest, longest))
    return {"bf16": 4 * tokens * heads * dim, "dram_read": 4 * tokens * kv_heads * dim}
