"""Triton's compiler gives warps of Blackwell their roles."""
# needs: tcgen05
# instead: ch18:warp_specialization_attention
# guess: 1.3x, as exponentials of one tile overlap the products of the next
# proves: /\bUSETMAXREG\b/
# has: tcgen05_mma_f16_tf32
# has: tma_load_tile

from shared_triton_attention import attention


def prepare(q, k, v, causal):
    return attention(q, k, v, causal, roles=True, cols=128, warps=8)
