"""Softmax over a few long rows: how likely each of millions of candidates is, for a handful of queries.

Predicted: the baseline by four SMs that take 64 bytes per cycle each, the optimized side by six passes over DRAM.

Measured: RESULTS.md. The baseline takes far longer than predicted, the optimized side half as long again.

Why: a block does not get 64 bytes per cycle. PyTorch's kernel has 1024 threads with 16 bytes in flight each, so a row is read three times
at 33 bytes/ns. With its writes it moves 45, two fifths of that rate at 1.75 GHz. No latency was measured.
Both sides move more than the 537 MB that a softmax must: the baseline reads x three times and writes y, 1057 MB. The optimized side reads
x and y once more for their largest entries and multiplies y in place, 1570 MB (dram__bytes.sum, H200). DRAM is 60 % busy then.
"""
# traffic: the baseline reads x three times; the optimized side reads x and y twice each, and writes y twice

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols, std=3.0)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: torch.softmax(x, dim=1),
    time_at={"rows": 4, "cols": 1 << 24},  # 256 MiB each way: more than four times an L2 of 60 MB
    cpu_at=None,  # sides are timed on one core there, which a single row keeps busy
    check_at=(
        {"rows": 1, "cols": 1},
        {"rows": 3, "cols": 1001},  # odd: no part has more than one entry
        {"rows": 2, "cols": 12_288},  # three parts a row
        {"rows": 5, "cols": 1 << 17},
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    # The baseline, on a CPU, adds up 16384 terms one after the other in a row of 2^17, as 1024 threads do in one of 2^24: it is
    # off by 1e-5 of y in 40 draws; times 2. The optimized side is off by 2.4e-6.
    rtol=2e-5,
    atol=0.0,
)
