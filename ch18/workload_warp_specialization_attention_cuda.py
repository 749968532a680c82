"""Causal attention of a whole prompt, as in warp_specialization_attention, by warpgroups in CUDA.

The kernel whose warpgroups take turns stands between as a step, so the last step is what they gain without.
"""
# needs: tma
# baseline: ch18/baseline_warp_specialization_attention.py

from dataclasses import replace

from workload_warp_specialization_attention import WORKLOAD as OF_TRITON

WORKLOAD = replace(OF_TRITON, ladder=("with_turns",))
