"""Optimized: select k values of every row, and sort only those."""


def prepare(x, k):
    def step():
        return x.topk(k, dim=1).values

    return step
