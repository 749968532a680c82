"""Optimized: Gluon: roles, softmax under own products; no turns."""
# needs: wgmma, tma
# predicts: without_turns 1.92 ms = heads * queries * ((keys + 128) * (128 / bf16 + 2.7e-13) + 2.3e-8 / sm_count) on h100  (both in step)
# predicts@8k: without_turns 0.494 ms = heads * queries * ((keys + 128) * (128 / bf16 + 2.7e-13) + 2.3e-8 / sm_count) on h100
# predicts@4k: without_turns 0.131 ms = heads * queries * ((keys + 128) * (128 / bf16 + 2.7e-13) + 2.3e-8 / sm_count) on h100
# proves: /\bUSETMAXREG\b/
# has: tma_load_tile
# has: wgmma_f16_bf16
# has: spills == 0

from optimized_warp_specialization_attention_pingpong import attention


def prepare(q, k, v, causal):
    return attention(q, k, v, causal, turns=False)
