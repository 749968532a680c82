"""Look rows of a table up and add them, an embedding bag: y[b] = sum over i of table[ids[b, i]], in float32.

`table` has `rows` rows of `width` floats, a multiple of 4. The table is constant, so a side may keep it in any memory. `ids` are new in
each call. The shape `l2` has a table that fits the L2 of a Hopper.
"""

import torch

from common import Spec, Workload

CACHED = 64 << 20  # bytes: no L2 up to Hopper's keeps more of the table from call to call


def inputs(rand, rows, width, bags, per_bag):
    return {
        "table": rand.uniform(rows, width, low=0.5, high=1.5),
        "ids": rand.integers(bags, per_bag, low=0, high=rows, dtype=torch.int32),
    }


def work(rows, width, bags, per_bag):
    lookups = bags * per_bag
    distinct = rows * (1 - (1 - 1 / rows) ** lookups)  # rows of the table that some id names, on average
    return {
        "l2_read": 4 * lookups * (width + 1),
        "dram_read": max(0, int(4 * width * distinct) - CACHED),
        "dram_write": 4 * bags * width,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, width, bags, per_bag: {"y": Spec((bags, width), torch.float32)},
    reference=lambda table, ids: table[ids.long()].sum(dim=1),
    time_at={
        "default": {"rows": 1 << 21, "width": 128, "bags": 65536, "per_bag": 32},  # a table of 1 GiB
        "l2": {"rows": 1 << 15, "width": 128, "bags": 16384, "per_bag": 32},  # of 16 MiB
    },
    check_at=(
        {"rows": 1, "width": 4, "bags": 1, "per_bag": 1},
        {"rows": 70, "width": 132, "bags": 9, "per_bag": 67},  # a row is no multiple of what a warp reads at once
        {"rows": 64, "width": 64, "bags": 65, "per_bag": 8},
    ),
    work=work,
    cache="hot",  # what the L2 keeps of the table is the point of the shape `l2`
    rtol=8e-6,  # positive terms, added one after the other: per_bag * 2^-24, with room
    atol=0.0,
    constants=("table",),
)
