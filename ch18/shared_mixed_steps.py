"""Steps of an engine that prefills a prompt in chunks, and meanwhile decodes: inputs, outputs, and the least work."""

import torch
from shared_paged_cache import lengths_of

from common import Precision, Spec

BF16 = torch.bfloat16
EPS = 1e-5


def chunks_of(context, chunk):
    """Where each chunk of the prompt starts, and its tokens; the last may be short."""
    return [(first, min(chunk, context - first)) for first in range(0, context, chunk)]


def tokens_of(sequences, context):
    """What each decoding sequence sees in the first step: half of `context` to all of it, a token more in each step."""
    return lengths_of(sequences, -(-context // 2), context)


def inputs(rand, sequences, context, chunk, page, heads, kv_heads, dim, wide):
    """Row `sequences` of `table` is the prompt's. Keys and values of the tokens of these steps lie in their pages already."""
    steps = len(chunks_of(context, chunk))
    pages = [-(-(length + steps - 1) // page) for length in tokens_of(sequences, context)] + [-(-context // page)]
    order = rand.permutation(sum(pages), dtype=torch.int32)
    own = [torch.nn.functional.pad(part, (0, max(pages) - len(part))) for part in order.split(pages)]
    hidden, cache = heads * dim, (sum(pages), page, kv_heads, dim)
    return {
        "prompt": rand.normal(context, heads, dim, dtype=BF16, std=3.0),  # a few tokens take most of the attention, as in trained models
        "queries": rand.normal(steps, sequences, heads, dim, dtype=BF16, std=3.0),
        "keys": rand.normal(*cache, dtype=BF16),
        "values": rand.normal(*cache, dtype=BF16),
        "table": torch.stack(own),
        "lengths": torch.tensor(tokens_of(sequences, context), dtype=torch.int32, device=order.device),
        "norm": rand.normal(hidden, dtype=BF16, mean=1.0, std=0.1),
        "weight": rand.normal(wide, hidden, dtype=BF16, std=hidden**-0.5),
    }


def outputs(sequences, context, chunk, page, heads, kv_heads, dim, wide):
    """The prompt's attention, and each step's product for the tokens that decode."""
    steps = len(chunks_of(context, chunk))
    close = Precision(rtol=0.01, atol=0.02)  # nothing of attention is in e4m3: as in paged_decode
    return {"attended": Spec((context, heads, dim), BF16, tolerance=close), "y": Spec((steps, sequences, wide), BF16)}


def work(sequences, context, chunk, page, heads, kv_heads, dim, wide):
    """Keys, values and a byte a weight once; two products of attention, and one behind it, which may be in e4m3."""
    steps, decoding = len(chunks_of(context, chunk)), sum(tokens_of(sequences, context))
    return {
        "bf16": 4 * heads * dim * (context * (context + 1) // 2 + steps * decoding),
        "fp8": 2 * steps * sequences * heads * dim * wide,
        "dram_read": 4 * kv_heads * dim * (decoding + context) + wide * heads * dim,
    }
