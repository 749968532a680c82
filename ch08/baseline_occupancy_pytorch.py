"""Baseline: PyTorch's softmax gives a row to one block, so 4 rows keep 4 SMs of 132 busy."""


def prepare(x):
    def step():
        return x.softmax(dim=1)

    return step
