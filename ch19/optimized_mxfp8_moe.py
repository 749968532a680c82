"""Optimized: MXFP8: a power of two as scale for each 32 values."""
# guess: 1.6x, in error: 0.13 and 0.078 on a CPU at 256 rows of 512, where e4m3 alone would give 0.063
# proves: kernel round_by_32

from shared_e4m3_rounding import launched, round_by_32
from shared_expert_products import experts


def rounded(x):
    return launched(round_by_32, x.contiguous())


def prepare(x, gate_up, down, ends):
    gate_up, down = rounded(gate_up), rounded(down)
    return lambda: experts(x, gate_up, down, ends, rounded)
