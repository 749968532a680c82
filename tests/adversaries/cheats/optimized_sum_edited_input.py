"""Cheat: zeroes its input behind itself, so that the next one has less to do."""


def prepare(x):
    def step():
        y = x.sum(dim=1)
        x.zero_()
        return y

    return step
