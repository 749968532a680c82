"""Optimized: MXFP8's scales are rounded up, so no value saturates."""
# guess: 1.17x, in error: 0.077 and 0.066 on a CPU at 1024 rows of 1024, without a spike and with spikes up to 65536

from functools import partial

from shared_e4m3_rounding import rounded
from shared_expert_products import experts


def prepare(x, gate_up, down, ends):
    rounding = partial(rounded, up=True)
    gate_up, down = rounding(gate_up), rounding(down)
    return lambda: experts(x, gate_up, down, ends, rounding)
