"""Optimized: a tile of latents is keys and values, loaded once."""
# predicts: one_part 0.334 ms = 2 * sequences * heads * context * 1088 / (0.3 * bf16 * 32 / 132) + 16e-6 on h100  (32 blocks, 64 heads each)
# proves: kernel attend_latent
# has: wgmma_f16_bf16 in attend_latent

from shared_latent_decode import latent_decode

PARTS = 1


def prepare(q, latent, k_up, v_up, context, heads, kv_rank, rope):
    return latent_decode(q, latent, k_up, v_up, context, heads, kv_rank, rope, PARTS)
