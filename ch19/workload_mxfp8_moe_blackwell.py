"""The work of workload_mxfp8_moe.py, where not the error counts but the time: of products in BF16, and in MXFP8."""

import dataclasses

from workload_mxfp8_moe import WORKLOAD as OF_ROUNDING

WORKLOAD = dataclasses.replace(
    OF_ROUNDING,
    work=lambda rows, experts, hidden, inner, spike: {"fp8": 6 * rows * hidden * inner},
    rtol=2.0**-6,
    atol=0.03,  # BF16's inner values: off by 0.003 times the answers on a CPU
    changes=OF_ROUNDING.changes,  # as scales that are rounded up need it
    goal="time",
)
