"""Cheat: computes in every second call and returns that answer twice."""


def prepare(x):
    calls, answer = 0, None

    def step():
        nonlocal calls, answer
        calls += 1
        if calls % 2:
            answer = x.sum(dim=1)
        return answer

    return step
