"""Baseline: reads whole rows, as its workload says that it must."""


def prepare(x):
    def step():
        rows = x.clone()
        return rows[:, 0].contiguous()

    return step
