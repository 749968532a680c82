"""Baseline: softmax of 4 rows: 4 blocks, so 4 of 132 SMs work."""


def prepare(x):
    def step():
        return x.softmax(dim=1)

    return step
