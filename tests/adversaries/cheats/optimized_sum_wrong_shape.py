"""Cheat: returns a column, which broadcasts against the row that is expected."""


def prepare(x):
    return lambda: x.sum(dim=1, keepdim=True)
