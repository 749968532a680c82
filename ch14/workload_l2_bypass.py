"""Add a row of a table to each token: y[t] = x[t] + table[ids[t]], tables that fit in the L2, tokens that do not."""

import torch

from common import Spec, Workload


def inputs(rand, tokens, rows, width):
    return {
        "x": rand.normal(tokens, width),
        "table": rand.normal(rows, width),
        "ids": rand.integers(tokens, low=0, high=rows, dtype=torch.int32),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, rows, width: {"y": Spec((tokens, width), torch.float32)},
    reference=lambda x, table, ids: x + table[ids.long()],
    time_at={"tokens": 262144, "rows": 8192, "width": 512},  # a table of 16 MiB, 512 MiB in and out
    cpu_at=None,
    check_at=({"tokens": 1, "rows": 1, "width": 1}, {"tokens": 77, "rows": 5, "width": 513}, {"tokens": 1000, "rows": 64, "width": 128}),
    work=lambda tokens, rows, width: {
        "dram_read": 4 * tokens * (width + 1) + 4 * min(rows, tokens) * width,
        "dram_write": 4 * tokens * width,
    },
    rtol=2.0**-23,
    atol=0.0,
    ladder=("evict_first",),
)
