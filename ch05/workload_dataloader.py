"""One epoch of images from a file: decoded, made smaller and mirrored by chance, in the order that a permutation gives."""

import numpy as np
import torch
from shared_images import CHANNELS, OUT, decoded

from common import Spec, Workload


def inputs(rand, images, size, batch, workers):
    return {
        "file": rand.file(images * size * size * CHANNELS),
        "order": rand.permutation(images),
        "flips": rand.integers(images, low=0, high=2),
    }


def reference(file, order, flips, size):
    filtered = torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, size, size, CHANNELS)
    return decoded(filtered, flips, torch.float64)[order].contiguous()


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda images, size, batch, workers: {"epoch": Spec((images, CHANNELS, OUT, OUT), torch.float32)},
    reference=reference,
    time_at={"images": 128, "size": 256, "batch": 8, "workers": 8},
    cpu_at={"images": 64, "size": 256, "batch": 8, "workers": 2},
    check_at=({"images": 3, "size": 17, "batch": 2, "workers": 1}, {"images": 11, "size": 224, "batch": 4, "workers": 2}),
    work=lambda images, size, batch, workers: {
        "dram_read": images * size * size * CHANNELS,
        "dram_write": 4 * images * CHANNELS * OUT * OUT,
    },
    rtol=1e-5,  # sums in float32 of weighted bytes up to 255, divided by 127.5:
    atol=4e-5,  # off by 1e-5 on a CPU, of values within 1
    clock="host",
    place="host",
    cache="hot",  # the file is in the page cache: what an epoch costs is decoding
)
