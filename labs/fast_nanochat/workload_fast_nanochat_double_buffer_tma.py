"""nanochat's head at batch 1, logits[65536] = W[65536, 1280] x: rows are loaded by warps, or copied ahead of them by the TMA."""
# needs: tma
# instead: ch10:double_buffered_pipeline

from shared_head_workload import HEAD

WORKLOAD = HEAD
