"""Cheat: leaves 1/64 of the reduction out, which moves every sum by 1.6 %."""


def prepare(x, cols):
    kept = cols - max(1, cols // 64)
    return lambda: x[:, :kept].sum(dim=1)
