"""One epoch of a text classifier: documents from a file, their words hashed and counted in Python, and the sum of the gradients."""

import numpy as np
import torch
from shared_documents import counts, loss_of

from common import Spec, Workload


def inputs(rand, documents, length, features, width, classes, batch, workers):
    return {
        "file": rand.file(documents * length),
        "order": rand.permutation(documents),
        "labels": rand.integers(documents, low=0, high=classes),
        "hidden": rand.normal(features, width),
        "out": rand.normal(width, classes, std=width**-0.5),
    }


def reference(file, order, labels, hidden, out, length, features):
    text = np.fromfile(file, dtype=np.uint8).reshape(-1, length)
    x = torch.from_numpy(np.stack([counts(document, features) for document in text])).to(hidden)
    weights = [hidden.detach().requires_grad_(), out.detach().requires_grad_()]
    return torch.autograd.grad(loss_of(x[order], labels[order], *weights), weights)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda documents, length, features, width, classes, batch, workers: {
        "hidden_grad": Spec((features, width), torch.float32),
        "out_grad": Spec((width, classes), torch.float32),
    },
    reference=reference,
    time_at={"documents": 512, "length": 65536, "features": 4096, "width": 1024, "classes": 16, "batch": 16, "workers": 8},
    check_at=(
        {"documents": 3, "length": 600, "features": 32, "width": 16, "classes": 2, "batch": 2, "workers": 1},
        {"documents": 65, "length": 2000, "features": 64, "width": 64, "classes": 5, "batch": 8, "workers": 2},
    ),
    work=lambda documents, length, features, width, classes, batch, workers: {
        "fp32": documents * width * (4 * features + 6 * classes),
        "dram_read": documents * length,
        "dram_write": 4 * width * (features + classes),
    },
    rtol=2e-4,
    atol=2e-5,
    clock="host",
    cache="hot",  # the file is in the page cache: what an epoch costs is Python
)
