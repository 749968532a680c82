"""nanochat's head at batch 1, logits[65536] = W[65536, 1280] x: rows are loaded by warps, or copied ahead by the TMA.

A finding: both sides read each weight once, and copies ahead gain next to nothing here.
"""
# needs: tma
# instead: ch10:double_buffered_pipeline

from shared_head_workload import HEAD

WORKLOAD = HEAD
