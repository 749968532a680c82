"""Optimized: each context is split into 4 parts: blocks fill the SMs."""
# reason: PyTorch's kernel has 4 tiles of queries a sequence, 64 blocks for 132 SMs, and loads keys and values apart
# predicts: baseline 0.175 ms = 2 * sequences * heads * context * 1088 / (0.3 * bf16 * 64 / 132) + 16e-6 on h100  (64 blocks: assumed)
# predicts: optimized 0.093 ms = 2 * sequences * heads * context * 1088 / (0.3 * bf16) + 16e-6 on h100  (products; up-projections: assumed)
# proves: kernel attend_latent
# has: wgmma_f16_bf16 in attend_latent
# has: pdl_wait in merge

from shared_latent_decode import latent_decode

PARTS = 4


def prepare(q, latent, k_up, v_up, context, heads, kv_rank, rope):
    return latent_decode(q, latent, k_up, v_up, context, heads, kv_rank, rope, PARTS)
