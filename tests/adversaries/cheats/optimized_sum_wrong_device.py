"""Cheat: works on the host and leaves the answer there."""


def prepare(x):
    return lambda: x.cpu().sum(dim=1)
