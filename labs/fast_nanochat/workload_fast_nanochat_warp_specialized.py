"""nanochat's head at batch 1, logits[65536] = W[65536, 1280] x, from two stages: refilled after a barrier of all warps, or by a warp.

A finding: a warp that only copies gains nothing here.
"""
# needs: tma
# instead: ch10:double_buffered_pipeline
# baseline: labs/fast_nanochat/optimized_fast_nanochat_double_buffer_tma.cu

from shared_head_workload import HEAD

WORKLOAD = HEAD
