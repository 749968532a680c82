"""How soon a gated layer serves many lengths: from a fresh process with empty compile caches to the first right answers at all of them."""

import torch
from torch.nn.functional import rms_norm, silu

from common import Metric, Spec, Workload


def lengths_of(lengths, longest):
    """That many lengths, evenly spaced, the longest last."""
    return [longest * (i + 1) // lengths for i in range(lengths)]


def inputs(rand, lengths, longest, width):
    return {
        "sequences": [rand.normal(length, width) for length in lengths_of(lengths, longest)],
        "gate": rand.normal(width, width, std=width**-0.5),
        "up": rand.normal(width, width, std=width**-0.5),
    }


def reference(sequences, gate, up):
    def pooled(x):
        x = rms_norm(x, x.shape[1:])
        return (silu(x @ gate) * (x @ up)).amax(dim=0)

    return torch.stack([pooled(x) for x in sequences])


def metrics():
    """How many graphs the process has compiled."""
    return {"compiled": Metric(torch._dynamo.utils.counters["stats"]["unique_graphs"], "graphs", "lower")}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda lengths, longest, width: {"y": Spec((lengths, width), torch.float32)},
    reference=reference,
    constants=("gate", "up"),
    time_at={"lengths": 4, "longest": 4096, "width": 512},
    cpu_at=None,  # a CPU's kernels take a C++ compiler seconds a length, in each of the fresh processes
    check_at=({"lengths": 2, "longest": 33, "width": 64}, {"lengths": 2, "longest": 100, "width": 31}),
    work=lambda lengths, longest, width: {
        "fp32": sum(4 * n * width * width for n in lengths_of(lengths, longest)),
        "dram_read": 4 * (sum(lengths_of(lengths, longest)) * width + 2 * width * width),
    },
    ladder=("default",),
    goal="setup",
    metrics=metrics,
    rtol=1e-4,  # products sum up to 512 float32 terms in another order than float64's
    atol=1e-5,
)
