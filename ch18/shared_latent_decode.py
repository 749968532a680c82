"""Latent decode attention by the kernels of shared_latent_attend.py."""

import torch
import triton
from shared_latent_attend import attend_latent
from shared_latent_products import between_products
from shared_merge import merge
from triton.tools.tensor_descriptor import TensorDescriptor

ROWS, TILE, WARPS, STAGES = 64, 32, 8, 4


def latent_decode(q, latent, k_up, v_up, context, heads, kv_rank, rope, parts):
    """A step that attends to latents in at most `parts` parts of each sequence's context, and merges what they found."""
    sequences, nope = len(q), k_up.shape[1]
    count = min(parts, triton.cdiv(context, TILE))
    span = triton.cdiv(triton.cdiv(context, count), TILE) * TILE
    rows = min(ROWS, triton.next_power_of_2(heads))
    averages = torch.empty(sequences, heads, count, kv_rank, device=q.device)
    sums = torch.empty(sequences, heads, count, device=q.device)
    rotary, tiles = (TensorDescriptor.from_tensor(latent.flatten(0, 1), [TILE, width]) for width in (rope, kv_rank))
    mixed = torch.empty(sequences, heads, kv_rank, dtype=q.dtype, device=q.device)
    unit = (nope + rope) ** -0.5 * 1.4426950408889634  # log2(e): exponentials are powers of two

    absorbed = torch.empty_like(mixed)

    def attend():
        sizes = {"RANK": kv_rank, "NOPE": nope, "ROPE": rope, "ROWS": rows, "TILE": TILE, "num_warps": WARPS, "num_stages": STAGES}
        grid = sequences, triton.cdiv(heads, rows), count
        attend_latent[grid](absorbed, q, tiles, rotary, averages, sums, context, span, heads, unit, **sizes)
        joined = {"DIM": kv_rank, "COUNT": triton.next_power_of_2(count), "EARLY": True, "num_warps": 4, "launch_pdl": True}
        merge[sequences * heads,](averages, sums, mixed, count, **joined)
        return mixed

    return between_products(q, k_up, v_up, absorbed, attend)
