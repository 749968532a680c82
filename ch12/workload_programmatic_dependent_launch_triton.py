"""The network of programmatic_dependent_launch, computed by kernels in Triton.

The baseline is that of programmatic_dependent_launch, in CUDA. Triton without PDL stands between as a step: the last step is PDL alone.
"""
# baseline: ch12/baseline_programmatic_dependent_launch.cu

from dataclasses import replace

from workload_programmatic_dependent_launch import WORKLOAD as OF_CUDA

WORKLOAD = replace(OF_CUDA, ladder=("in_order",))
