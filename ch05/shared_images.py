"""Images in one file, filtered as PNG filters them, and what a training step wants of them: decoded, smaller, flipped or not."""

import numpy as np
import torch
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader, Dataset

OUT = 112  # pixels a side
CHANNELS = 3


def decoded(filtered, flips, dtype=torch.float32):
    """Images (n, 3, OUT, OUT) of bytes (n, size, size, 3), of which each is the difference to the pixel on its left (PNG's filter 1)."""
    pixels = filtered.cumsum(dim=2, dtype=torch.uint8).permute(0, 3, 1, 2).to(dtype)
    small = interpolate(pixels, (OUT, OUT), mode="bilinear", antialias=True) / 127.5 - 1
    return torch.where(flips[:, None, None, None] > 0, small.flip(-1), small)


class Images(Dataset):
    """The images in the file at `path`, each asked for by its number and whether it is mirrored."""

    def __init__(self, path, size):
        self.records = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, size, size, CHANNELS)

    def __getitem__(self, index):
        image, flip = index
        return decoded(torch.tensor(self.records[image])[None], torch.tensor([flip]))[0]


class Order:
    """What an epoch asks for, as the tensors `order` and `flips` hold it when the epoch begins."""

    def __init__(self, order, flips):
        self.order, self.flips = order, flips

    def __iter__(self):
        return iter(zip(self.order.tolist(), self.flips[self.order].tolist(), strict=True))


def epochs(file, order, flips, size, batch, **workers):
    """A step that collects one epoch, by a DataLoader with the arguments `workers`."""
    images = DataLoader(Images(file, size), batch, sampler=Order(order, flips), **workers)
    epoch = torch.empty(len(order), CHANNELS, OUT, OUT)

    def step():
        for i, each in enumerate(images):
            epoch[i * batch : i * batch + len(each)] = each
        return epoch

    return step
