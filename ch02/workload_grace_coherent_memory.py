"""One layer, y = x w, for requests whose rows lie in pinned host memory, small requests and large ones; y goes back there. Float32.

A request has rows of its own, and each is computed by itself, as requests are that come one by one. `x` holds the rows of all requests,
first `small` of `small_rows` rows, then `large` of `large_rows`. `width` is a multiple of 64. `crossing` is where a side tells up to how
many bytes the GPU uses a request in place; 0 says that it copies all of them.
"""

import torch

from common import Metric, Spec, Workload


def inputs(rand, small, small_rows, large, large_rows, width):
    return {
        "x": rand.uniform(small * small_rows + large * large_rows, width, low=0.5, high=1.5, where="pinned"),
        "w": rand.uniform(width, width, low=0.5, high=1.5) / width,
        "crossing": rand.integers(1, low=0, high=1),
    }


def rows_of(small, small_rows, large, large_rows):
    return small * small_rows + large * large_rows


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda small, small_rows, large, large_rows, width: {
        "y": Spec((rows_of(small, small_rows, large, large_rows), width), torch.float32, where="pinned")
    },
    reference=lambda x, w: x @ w,
    time_at={"small": 96, "small_rows": 16, "large": 2, "large_rows": 4096, "width": 256},  # requests of 16 KiB and of 4 MiB
    check_at=(
        {"small": 1, "small_rows": 1, "large": 0, "large_rows": 1, "width": 64},
        {"small": 3, "small_rows": 5, "large": 1, "large_rows": 70, "width": 64},
        {"small": 2, "small_rows": 16, "large": 1, "large_rows": 33, "width": 128},
    ),
    work=lambda small, small_rows, large, large_rows, width: {
        "h2d": 4 * width * rows_of(small, small_rows, large, large_rows),
        "d2h": 4 * width * rows_of(small, small_rows, large, large_rows),
        "fp32": 2 * width * width * rows_of(small, small_rows, large, large_rows),
    },
    metrics=lambda crossing: {"crossing_kib": Metric(crossing.item() / 1024, "KiB", "neither")},
    rtol=2e-5,  # positive terms: width * 2^-24 at most, with room
    atol=0.0,
    constants=("w",),
    in_place=("crossing",),
)
