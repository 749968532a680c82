"""Functions that an attribute of a module holds, under another name than their own, as the tests of `compare` have them."""

import torch


def draw(rand, rows=32):
    return {"x": rand.normal(rows, 64)}


def total(x):
    return x.sum(dim=1)


def doubled(x):
    return 2 * x.sum(dim=1)


def scaled_by(weights):
    return lambda x: x @ weights


compiled = torch.compile(total, backend="eager")  # has the name of total
_twice = torch.compile(doubled, backend="eager")
at_once = lambda x: x.sum(dim=1)  # noqa: E731
layer = torch.nn.Linear(64, 1)  # other weights in each process, and so in the next
scaled = scaled_by(torch.rand(64))
