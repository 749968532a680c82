"""Optimized: the same kernels in Triton, launched without PDL."""
# needs: tma
# predicts: in_order 0.263 ms = layers * (4 * dim * dim / dram_read + 0.8e-6 + 2.2e-6 + 0.2e-6)  (nothing hidden; rows summed across warps)
# has: spills == 0

from optimized_programmatic_dependent_launch_triton import chained


def prepare(x, weight, layers, dim):
    return chained(x, weight, layers, dim, launch_pdl=False)
