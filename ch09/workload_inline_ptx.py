"""Rows that an all-to-all has brought, put in order and scaled by column: y[i] = received[slot[i]] * gain, rows of 16-byte groups."""

import torch

from common import Spec, Workload


def inputs(rand, rows, cols):
    slot = rand.permutation(rows, dtype=torch.int32)
    return {"received": rand.normal(rows, cols), "slot": slot, "gain": rand.uniform(cols, low=0.5, high=1.5)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda received, slot, gain: received[slot.long()] * gain,
    time_at={"rows": 16384, "cols": 4096},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=({"rows": 1, "cols": 4}, {"rows": 7, "cols": 132}, {"rows": 33, "cols": 1028}, {"rows": 9, "cols": 4096}),
    work=lambda rows, cols: {"dram_read": 4 * (rows * cols + rows + cols), "dram_write": 4 * rows * cols},
    rtol=2**-24,  # one rounding of a correctly rounded product
    atol=0.0,
)
