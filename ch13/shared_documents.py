"""Documents in one file, hashed into counts of words, and an epoch of training on them that adds up gradients."""

import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def counts(document, features):
    """How often each word is in `document` (bytes, uint8), by the hash of the word; over the root of how many words there are."""
    words = [zlib.crc32(word) % features for word in bytes(document & 31).split(b"\0")]  # of 32 letters, 0 is the space
    return np.bincount(words, minlength=features).astype(np.float32) / len(words) ** 0.5


class Documents(Dataset):
    """The documents of `length` bytes in the file at `path`, each asked for by its number and returned with it."""

    def __init__(self, path, length, features):
        self.documents, self.features = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, length), features

    def __getitem__(self, number):
        return torch.from_numpy(counts(self.documents[number], self.features)), number


class Order:
    """What an epoch asks for, as the tensor `order` holds it when the epoch begins."""

    def __init__(self, order):
        self.order = order

    def __iter__(self):
        return iter(self.order.tolist())


def loss_of(x, labels, hidden, out):
    """The sum of the losses of a classifier with one hidden layer."""
    return F.cross_entropy(torch.tanh(x @ hidden) @ out, labels, reduction="sum")


def training(loader, labels, hidden, out):
    """A step: one epoch of `loader`, whose batches are copied to the device of `labels`, and the sum of all gradients."""
    weights = [hidden.detach().requires_grad_(), out.detach().requires_grad_()]
    next(iter(loader))  # starts the workers, where there are any, before a step does

    def step():
        totals = [torch.zeros_like(hidden), torch.zeros_like(out)]
        for batch, numbers in loader:
            x = batch.to(labels.device, non_blocking=True)
            loss = loss_of(x, labels[numbers.to(labels.device, non_blocking=True)], *weights)
            torch._foreach_add_(totals, torch.autograd.grad(loss, weights))
        return tuple(totals)

    return step


def loader_of(file, order, length, features, batch, **settings):
    """A DataLoader over the documents in `file` with the arguments `settings`."""
    return DataLoader(Documents(file, length, features), batch, sampler=Order(order), **settings)
