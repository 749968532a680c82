"""Baseline: one PyTorch kernel for every operation of the formula, each a round trip through DRAM."""


def prepare(x):
    def step():
        shifted = x - x.amax(dim=1, keepdim=True)  # reads 2, writes 1
        numerator = shifted.exp()  # reads 1, writes 1
        return numerator / numerator.sum(dim=1, keepdim=True)  # reads 2, writes 1

    return step
