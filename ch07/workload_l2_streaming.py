"""Add to each token of 32 floats the row of a table that its kind names: y[t] = x[t] + table[kind[t]], in float32.

Predicted: a guess, 1.05x, from a tuning run on an H200. No equation says how many table rows the L2 keeps.
The step streams_first marks the streams alone, and is guessed to have most of it.

Measured: RESULTS.md. The gain is as guessed.

Why: the L2 keeps more of the table, so fewer of its rows come from DRAM again (dram__bytes_read.sum in expectations_h200.json).
The least is 570 MB: x, kind and the table, once each. Each 17 MB beyond that are the table once more.
Hypothesis: the L2 sets the pace of both sides. It is the busiest unit in either (lts__throughput in expectations_h200.json).
It serves the table's rows beside the streams: 72 million sectors, where hbm_copy has 52 million for streams as long.
(lts__t_sectors.sum, H200.)
"""

import torch

from common import Spec, Workload


def inputs(rand, tokens, kinds):
    return {
        "x": rand.normal(tokens, 32),
        "table": rand.normal(kinds, 32),
        "kind": rand.integers(tokens, low=0, high=kinds, dtype=torch.int32),
    }


def work(tokens, kinds):
    return {"dram_read": 132 * tokens + 128 * min(tokens, kinds), "dram_write": 128 * tokens}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, kinds: {"y": Spec((tokens, 32), torch.float32)},
    reference=lambda x, table, kind: x + table[kind.long()],
    time_at={"tokens": 1 << 22, "kinds": 1 << 17},  # a table of 16 MiB, which fits the H200's L2 of 60 MB, beside two streams of 512 MiB
    check_at=(
        {"tokens": 1, "kinds": 1},
        {"tokens": 128, "kinds": 7},  # exactly two blocks
        {"tokens": 129, "kinds": 1000},
        {"tokens": 5003, "kinds": 300},
    ),
    work=work,
    rtol=6e-8,  # an addition rounds once: 2^-24, which is 6e-8
    atol=0.0,
    ladder=("streams_first",),
)
