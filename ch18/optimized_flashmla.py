"""Optimized: a tile of latents is keys and values; parts fill the SMs."""
# reason: PyTorch's kernel has 4 tiles of queries a sequence, 64 blocks for 132 SMs, and loads keys and values apart
# predicts: baseline 0.175 ms = 2 * sequences * heads * context * 1088 / (0.3 * bf16 * 64 / 132) + 16e-6 on h100  (64 blocks: assumed)
# predicts: optimized 0.093 ms = 2 * sequences * heads * context * 1088 / (0.3 * bf16) + 16e-6 on h100  (products; up-projections: assumed)
# proves: kernel attend_latent
# has: wgmma_f16_bf16 in attend_latent

import torch
import triton
from shared_latent_attend import attend_latent
from shared_paged_attend import merge

PARTS, ROWS, TILE = 8, 64, 32


def prepare(q, latent, k_up, v_up, context, heads, kv_rank, rope):
    sequences, nope = len(q), k_up.shape[1]
    count = min(PARTS, triton.cdiv(context, TILE))
    span = triton.cdiv(triton.cdiv(context, count), TILE) * TILE
    rows = min(ROWS, triton.next_power_of_2(heads))
    absorbed = torch.empty(sequences, heads, kv_rank + rope, dtype=q.dtype, device=q.device)
    parts = torch.empty(sequences, heads, count, kv_rank, device=q.device)
    sums = torch.empty(sequences, heads, count, device=q.device)
    mixed = torch.empty(sequences, heads, kv_rank, dtype=q.dtype, device=q.device)
    unit = (nope + rope) ** -0.5 * 1.4426950408889634  # log2(e): exponentials are powers of two

    def step():
        absorbed[..., :kv_rank] = torch.bmm(q[..., :nope].transpose(0, 1), k_up).transpose(0, 1)
        absorbed[..., kv_rank:] = q[..., nope:]
        sizes = {"RANK": kv_rank, "ROPE": rope, "ROWS": rows, "TILE": TILE, "num_warps": 8, "num_stages": 2}
        attend_latent[sequences, triton.cdiv(heads, rows), count](absorbed, latent, parts, sums, context, span, heads, unit, **sizes)
        merge[sequences * heads,](parts, sums, mixed, count, DIM=kv_rank, COUNT=triton.next_power_of_2(count), num_warps=4)
        return torch.bmm(mixed.transpose(0, 1), v_up.transpose(1, 2)).transpose(0, 1).contiguous()

    return step
