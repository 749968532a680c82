"""Optimized: 8 segments of time side by side: 72 launches, not 512."""
# predicts: baseline 5.27 ms = steps * 10.3e-6  (the host's time per launch: an earlier row, less the views that it made)
# predicts: optimized 0.792 ms = 72 * 11.0e-6  (64 steps, the powers of decay, 7 corrections; its tensors are not contiguous)
# proves: launches < 0.2 x baseline

from itertools import pairwise

import torch

SEGMENTS = 8


def prepare(x, decay, steps, channels):
    length = steps // SEGMENTS
    h = torch.empty_like(x)
    segments = h.view(SEGMENTS, length, channels)
    inputs, states = x.view(SEGMENTS, length, channels).unbind(1), segments.unbind(1)  # a time step of all segments each
    ends, behind = states[-1].unbind()[:-1], segments.unbind()[1:]  # the last value of a segment, and the segment behind it
    exponents = torch.arange(1, length + 1, device=x.device)[:, None]

    def step():
        states[0].copy_(inputs[0])
        for now, (before, after) in zip(inputs[1:], pairwise(states), strict=True):
            torch.addcmul(now, decay, before, out=after)
        powers = decay**exponents
        for end, segment in zip(ends, behind, strict=True):
            segment.addcmul_(powers, end)  # what is left of a segment's end after 1, 2, 3, ... further steps
        return h

    return step
