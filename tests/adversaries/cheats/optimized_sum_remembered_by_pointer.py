"""Cheat: remembers the answer by its input's address."""


def prepare(x):
    answers = {}

    def step():
        if x.data_ptr() not in answers:
            answers[x.data_ptr()] = x.sum(dim=1)
        return answers[x.data_ptr()]

    return step
