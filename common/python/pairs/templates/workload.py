"""Sum the rows of a float32 matrix: y[r] = sum over c of x[r, c]. (Say here, in one line, what is computed.)

What a workload can state: `help(Workload)`, and docs/writing-a-pair.md in the folder of the package `common`.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols)},  # by name; drawn from the seed of the run
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},  # what step returns
    reference=lambda x: x.sum(dim=1),  # the obvious slow answer, called in float64
    time_at={"rows": 16384, "cols": 16384},  # on a GPU
    cpu_at={"rows": 1024, "cols": 1024},  # on a CPU
    check_at=({"rows": 3, "cols": 65}, {"rows": 130, "cols": 1}, {"rows": 1, "cols": 1024}),  # odd shapes, checked and not timed
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows},  # bytes that any implementation must move
    rtol=2e-5,  # terms of one sign, added one after the other: an error of about sqrt(cols) * 2^-24, with room
    atol=0.0,
)
