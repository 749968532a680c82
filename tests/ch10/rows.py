"""Pairs of chapter 10 that take the rows of a matrix, on the CPU: whether an answer is right, and what a side waits for."""

import re

import torch

from common.python.child.sides.loader import load_workload
from tests.ch10.emulated import CHAPTER, build, inputs_of
from tests.support.teeth import accepts

SHARED = "shared_block_reduce.cuh"


class Pair:
    """Both sides of a pair, built as they are asked for."""

    def __init__(self, name, folder):
        self.workload = load_workload(CHAPTER / f"workload_{name}.py")
        self._name, self._folder, self._built = name, folder, {}

    def answer(self, half, values, shape, **how):
        """What the side of `half` makes of `values`; its scratch and its output are NaN before."""
        if half not in self._built:
            self._built[half] = build(f"{half}_{self._name}.cu", self._folder)
        (spec,) = self.workload.outputs(**shape).values()
        y = torch.full(spec.shape, torch.nan)
        scratch = [torch.full((shape["rows"] * 8,), torch.nan)] if "scratch:" in text_of(f"{half}_{self._name}.cu") else []
        self._built[half].launch(values["x"], *scratch, y, shape["rows"], shape["cols"], **how)
        return y

    def is_right(self, half, shape, **how):
        values = inputs_of(self.workload, shape)
        found = self.answer(half, values, shape, **how)
        return accepts(self.workload.tolerance(half), [found], [self.workload.reference(values["x"].double())])

    def is_wrong_without(self, place, shape):
        """Whether the optimized side, which then does not wait at `place`, gives a wrong answer or does what it must not."""
        for seed in range(4):
            try:
                if not self.is_right("optimized", shape, seed=seed, skipped=place):
                    return True
            except RuntimeError:
                return True
        return False


def text_of(file):
    return (CHAPTER / file).read_text()


def waits(name):
    """The lines of the optimized side at which threads wait, as file:line and their text."""
    pattern = r"\b(__syncthreads|cluster\.sync|cluster\.barrier_wait)\("
    return [
        (f"{file}:{number}", line.strip())
        for file in (f"optimized_{name}.cu", SHARED)
        for number, line in enumerate(text_of(file).splitlines(), 1)
        if re.search(pattern, line)
    ]
