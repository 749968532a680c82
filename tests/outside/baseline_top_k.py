"""Baseline: sort every row, and throw most of it away."""


def prepare(x, k):
    def step():
        return x.sort(dim=1, descending=True).values[:, :k].contiguous()

    return step
