"""Cheat: remembers the answer by its input's content, of which it looks at one element, and not closely."""


def prepare(x):
    answers = {}

    def step():
        key = round(float(x[0, 0]))
        if key not in answers:
            answers[key] = x.sum(dim=1)
        return answers[key].clone()

    return step
