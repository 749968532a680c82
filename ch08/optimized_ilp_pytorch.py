"""Optimized: 8 segments of time side by side: 72 launches, not 512."""
# predicts: baseline 4.92 ms = steps * 9.6e-6  (the host's time per launch, assumed)
# predicts: optimized 0.691 ms = 72 * 9.6e-6  (64 steps, the powers of decay, 7 corrections)
# proves: launches < 0.2 x baseline

from itertools import pairwise

import torch

SEGMENTS = 8


def prepare(x, decay, steps, channels):
    length = steps // SEGMENTS
    h = torch.empty_like(x)
    segments, inside = x.view(SEGMENTS, length, channels), h.view(SEGMENTS, length, channels)
    exponents = torch.arange(1, length + 1, device=x.device)[:, None]

    def step():
        inside[:, 0] = segments[:, 0]
        for t in range(1, length):
            torch.addcmul(segments[:, t], decay, inside[:, t - 1], out=inside[:, t])
        powers = decay**exponents
        for before, segment in pairwise(inside):
            segment.addcmul_(powers, before[-1])  # what is left of a step's end after 1, 2, 3, ... further steps
        return h

    return step
