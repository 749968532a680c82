"""One query's attention to a cache that grows by a chunk of tokens at a time, each time moved to a larger tensor; what counts is memory.

The figure is what PyTorch's allocator has taken from the driver at most (`torch.cuda.max_memory_reserved`). It includes blocks that are
free and too small for what is asked for next. The goal `memory` counts blocks in use, so it does not see them. Self-reported.
"""

import torch

from common import Metric, Spec, Workload


def inputs(rand, chunks, tokens, width):
    return {
        "x": rand.normal(tokens, width),
        "query": rand.normal(width, std=width**-0.5),
        "gains": rand.uniform(chunks, low=0.5, high=2.0),
    }


def reference(x, query, gains):
    """Without a cache: the softmax of all chunks so far, each from x."""
    scores = gains[:, None] * (x @ query)
    shares = [scores[: i + 1].flatten().softmax(dim=0).view(i + 1, -1) for i in range(len(gains))]
    return torch.stack([(gains[: i + 1] @ share) @ x for i, share in enumerate(shares)])


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda chunks, tokens, width: {"y": Spec((chunks, width), torch.float32)},
    reference=reference,
    time_at={"chunks": 32, "tokens": 2048, "width": 1024},  # chunks of 8 MiB
    check_at=(
        {"chunks": 1, "tokens": 65, "width": 16},
        {"chunks": 5, "tokens": 7, "width": 130},
        {"chunks": 9, "tokens": 64, "width": 64},
    ),
    # a query reads the cache of its time once, though here x alone would do: it is every chunk but for a gain
    work=lambda chunks, tokens, width: {"dram_read": 4 * tokens * width * chunks * (chunks + 1) / 2, "dram_write": 4 * chunks * width},
    rtol=1e-5,
    atol=2e-5,
    goal="reserved_bytes",
    metrics=lambda: {"reserved_bytes": Metric(float(torch.cuda.max_memory_reserved()), "bytes", "lower")},
)
