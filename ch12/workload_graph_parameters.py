"""Requests of different lengths, one after the other: each signal is smoothed by eight passes, a graph of eight kernels.

Predicted: 2.5x. The baseline instantiates a graph for each request; the optimized side puts new pointers and sizes into one.

Measured: RESULTS.md.

Why: instantiation allocates and uploads the whole graph, though only arguments and grids of its nodes differ between requests.
"""
# traffic: signals of up to 1 MB stay in the L2 between passes

import torch

from common import Spec, Workload

PASSES = 8


def lengths(requests, least):
    """The length of each request: a different one for each."""
    return [least * (r + 1) for r in range(requests)]


def outputs(requests, least):
    return {"y": Spec((sum(lengths(requests, least)),), torch.float32)}


def reference(x, requests, least):
    smoothed = []
    for signal in x.split(lengths(requests, least)):
        y = signal.clone()
        for _ in range(PASSES):
            left, right = torch.cat([y[:1], y[:-1]]), torch.cat([y[1:], y[-1:]])
            y = 0.25 * left + 0.5 * y + 0.25 * right
        smoothed.append(y)
    return torch.cat(smoothed)


WORKLOAD = Workload(
    inputs=lambda rand, requests, least: {"x": rand.uniform(sum(lengths(requests, least)))},
    outputs=outputs,
    reference=reference,
    time_at={"requests": 16, "least": 4096},  # 16 KB to 256 KB: a pass is shorter than a launch
    check_at=({"requests": 1, "least": 1}, {"requests": 3, "least": 7}, {"requests": 4, "least": 300}),
    work=lambda requests, least: {
        "launch": 1,
        "dram_read": 4 * sum(lengths(requests, least)),
        "dram_write": 4 * sum(lengths(requests, least)),
    },
    rtol=4e-7,  # eight passes of values of at most 1 round by less than 2^-24 each
    atol=0.0,
    clock="launch",
)
