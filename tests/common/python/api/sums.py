"""Functions of a package outside the tree, as the tests of `compare` have them."""

import torch


def draw(rand, rows=32):
    return {"x": rand.normal(rows, 64)}


def slow(x):
    total = x[:, 0].clone()
    for column in range(1, x.shape[1]):
        total += x[:, column]
    return total


def fast(x):
    return x.sum(dim=1)


def wrong(x):
    return x.sum(dim=1) * 1.01


def nothing(x):
    """Forgets to return."""


def added(a, b):
    return a + b


def bare(rand):
    return rand.normal(32, 64)


def threads(x):
    return torch.full((32,), float(torch.get_num_threads()))


def one(x):
    return torch.ones(32)


def fails(x):
    raise ValueError("no such thing")


def work(rows=32):
    return {"dram_read": 4 * 64 * rows}


def drawn_elsewhere(rand):
    return {"x": torch.randn(32, 64)}


def misspelt(rand):
    return {"x": rand.nromal(32, 64)}


WEIGHTS = torch.ones(64, 64)


def weighted(x):
    return x @ WEIGHTS


def as_dict(x):
    return {"y": x.sum(dim=1)}
