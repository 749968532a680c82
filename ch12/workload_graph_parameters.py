"""Requests of different lengths, one after the other: each signal is smoothed by `passes` passes, a kernel each.

A pass is shorter than a launch, so the host sets the time of plain launches. A graph needs one launch per request, and new pointers.
"""
# traffic: signals of up to 1 MB stay in the L2 between passes

import torch

from common import Spec, Workload


def lengths(requests, least):
    """The length of each request: a different one for each."""
    return [least * (r + 1) for r in range(requests)]


def outputs(requests, least, passes):
    return {"y": Spec((sum(lengths(requests, least)),), torch.float32)}


def reference(x, requests, least, passes):
    smoothed = []
    for signal in x.split(lengths(requests, least)):
        y = signal.clone()
        for _ in range(passes):
            left, right = torch.cat([y[:1], y[:-1]]), torch.cat([y[1:], y[-1:]])
            y = 0.25 * left + 0.5 * y + 0.25 * right
        smoothed.append(y)
    return torch.cat(smoothed)


WORKLOAD = Workload(
    inputs=lambda rand, requests, least, passes: {"x": rand.uniform(sum(lengths(requests, least)))},
    outputs=outputs,
    reference=reference,
    time_at={"requests": 16, "least": 4096, "passes": 32},  # 16 KB to 256 KB: a pass is shorter than a launch
    check_at=(
        {"requests": 1, "least": 1, "passes": 1},
        {"requests": 3, "least": 7, "passes": 8},
        {"requests": 4, "least": 300, "passes": 33},
    ),
    work=lambda requests, least, passes: {
        "launch": 1,
        "dram_read": 4 * sum(lengths(requests, least)),
        "dram_write": 4 * sum(lengths(requests, least)),
    },
    rtol=1.6e-6,  # 32 passes, each of which rounds: 4.0e-7 is the worst of 2 million values at `time_at` on a CPU, times 4
    atol=0.0,
    clock="launch",
    ladder=("instantiate",),
)
