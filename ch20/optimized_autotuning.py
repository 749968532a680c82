"""Optimized: the launch configuration is raced for, at this shape."""
# predicts: baseline 51.2 us = k / 64 / 2 * 0.8e-6  (two K-steps in flight per program, latency 0.8 us: assumed)
# predicts: optimized 9.69 us = 2 * n * k / (0.85 * dram_read) + 2e-6 on h100  (deeper tiles of few columns; 2 us to start: assumed)
# proves: grid > baseline

from shared_skinny import SPACE, product

from common.race import fastest, milliseconds


def prepare(a, b):
    steps = {launch: product(a, b, launch) for launch in SPACE}
    if not a.is_cuda:  # the interpreter does not race
        return steps[SPACE[0]]
    for step in steps.values():
        step()  # compiles
    return steps[fastest(steps, lambda launch: milliseconds(steps[launch]))]
