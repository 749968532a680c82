"""Decode attention over paged keys and values: one program per key head, or several over parts of the context."""

import torch
import triton
from shared_merge import merge
from shared_paged_attend import attend

TILE = 64  # tokens that a program multiplies at once
PER_SM = 4  # programs at once: shared memory and registers leave room for a fifth on an H100's SM


def span_of(tokens, programs, sms=None):
    """Tokens of a part, a multiple of the tile: as many parts as let `programs` times the parts fill `sms` SMs, this GPU's by default."""
    parts = max(1, PER_SM * (sms or sm_count()) // programs)
    return -(-tokens // (parts * TILE)) * TILE


def sm_count():
    """The SMs of this GPU; without one, an H100's."""
    return torch.cuda.get_device_properties().multi_processor_count if torch.cuda.is_available() else 132


def starts_early(q):
    """Whether the GPU of `q` has programmatic dependent launch, which is Hopper's. On a CPU yes, so that checks run the same code."""
    return not q.is_cuda or torch.cuda.get_device_capability(q.device) >= (9, 0)


def decoder(q, keys, values, table, lengths, span, tile=TILE, warps=4, stages=3):
    """A step: [sequences, heads, dim] in q's dtype. `span` is how many tokens a program attends to, in the order of the context.

    q [sequences, heads, dim]; keys and values [pages, page tokens, kv heads, dim]; table int32 [sequences, pages of the longest];
    lengths int32 [sequences], at least 1 each. Where one part holds the longest sequence, nothing is merged, and programs have `warps`.
    A program keeps loads of up to `stages` tiles in flight: of their page numbers, then of their keys and values.
    """
    (sequences, heads, dim), (_, page, kv_heads, _), pages = q.shape, keys.shape, table.shape[1]
    count = triton.cdiv(pages * page, span)
    y = torch.empty_like(q)
    parts = torch.empty(sequences, heads, count, dim, device=q.device) if count > 1 else y
    sums = torch.empty(sequences, heads, count, device=q.device)
    unit = dim**-0.5 * 1.4426950408889634  # log2(e): exponentials are powers of two
    split = count > 1
    early = split and starts_early(q)
    program = {"num_warps": 2 if split else warps, "num_stages": stages}

    def step():
        sizes = {"DIM": dim, "GROUP": heads // kv_heads, "PAGE": page, "TILE": tile, "EARLY": early}
        grid = (sequences, kv_heads, count)
        attend[grid](q, keys, values, table, lengths, parts, sums, span, pages, unit, **sizes, **program)
        if split:  # it starts before `attend` ends; the next step's `attend` does not, so it waits until the parts are merged
            joined = {"DIM": dim, "COUNT": triton.next_power_of_2(count), "EARLY": early}
            merge[sequences * heads,](parts, sums, y, count, **joined, num_warps=2 if count <= 64 else 4, launch_pdl=early)
        return y

    return step
