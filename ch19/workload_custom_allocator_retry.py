"""Attention within each of many short documents, averaged over its tokens; device memory beyond the inputs is limited to `megabytes`.

The limit is that of PyTorch's allocator. It stands for what other work leaves of the device. A side may ask for it, or run into it.
"""

import torch

from common import Spec, Workload


def reference(x):
    scores = torch.softmax(x @ x.mT * x.shape[-1] ** -0.5, dim=-1)
    return (scores @ x).mean(dim=1)


WORKLOAD = Workload(
    inputs=lambda rand, documents, tokens, width, megabytes: {"x": rand.normal(documents, tokens, width)},
    outputs=lambda documents, tokens, width, megabytes: {"y": Spec((documents, width), torch.float32)},
    reference=reference,
    time_at={"documents": 4096, "tokens": 256, "width": 64, "megabytes": 1500.0},  # all at once would take over 2 GB
    cpu_at={"documents": 256, "tokens": 64, "width": 32, "megabytes": 100.0},
    check_at=(
        {"documents": 1, "tokens": 65, "width": 8, "megabytes": 64.0},
        {"documents": 21, "tokens": 33, "width": 16, "megabytes": 64.0},
        {"documents": 64, "tokens": 16, "width": 64, "megabytes": 64.0},
    ),
    work=lambda documents, tokens, width, megabytes: {"fp32": 4 * documents * tokens * tokens * width},
    rtol=1e-4,  # float32 sums of up to 256 products; means of values near zero
    atol=2e-6,
)
