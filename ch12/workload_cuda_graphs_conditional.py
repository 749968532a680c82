"""Connected components of a grid: each open cell gets the smallest index in its component, by sweeps until none changes.

Predicted: 2.5x. Each of some 57 rounds costs the baseline the host's work: three launches, a copy and a wait.
Inside the graph a round costs only its three kernels, whose launch the host does not see.

Measured: RESULTS.md.

Why: the baseline's host reads whether round k changed anything before it launches round k + 1, and the GPU idles for that long.
A round after the last changes nothing but the count, so a host can launch several before it reads. The step `eight_rounds` does,
in a plain graph whose kernels count no round behind one that changed nothing.
"""
# traffic: both label arrays of 1 MB stay in the L2, so DRAM gives x once

import torch

from common import Spec, Workload

DENSITY = 0.5  # of open cells; x < 0.5 is the same comparison in float32 and in float64


def reference(x, rows, cols):
    """Rounds of two sweeps, and the labels, int32; a closed cell has the label rows * cols."""
    closed = rows * cols
    is_open = x < DENSITY
    cells = torch.arange(closed, device=x.device, dtype=torch.int32).view(rows, cols)
    label, rounds, changes = torch.where(is_open, cells, closed), 0, True
    while changes:
        for _ in range(2):
            before = label
            edged = torch.full((rows + 2, cols + 2), closed, device=x.device, dtype=torch.int32)
            edged[1:-1, 1:-1] = label
            for near in (edged[:-2, 1:-1], edged[2:, 1:-1], edged[1:-1, :-2], edged[1:-1, 2:]):
                label = torch.where(is_open, torch.minimum(label, near), closed)
        rounds, changes = rounds + 1, bool((label != before).any())
    return label, torch.tensor([rounds], dtype=torch.int32, device=x.device)


WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols)},
    outputs=lambda rows, cols: {"label": Spec((rows, cols), torch.int32), "rounds": Spec((1,), torch.int32)},
    reference=reference,
    time_at={"rows": 512, "cols": 512},  # a sweep takes about as long as a launch
    check_at=(
        {"rows": 1, "cols": 1},
        {"rows": 1, "cols": 70},
        {"rows": 33, "cols": 5},
        {"rows": 40, "cols": 67},  # some ten rounds; another number for each seed
    ),
    work=lambda rows, cols: {"launch": 1, "dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # integers are exact, however often the sweeps run
    atol=0.0,
    clock="launch",
    ladder=("eight_rounds",),
)
