"""How many requests each decode step of cudagraph_bucketing has, and where their tokens lie, and the model that they run."""

import dataclasses

import torch

from common.models.config import nanochat


def config_of(layers, vocabulary):
    """nanochat at that depth and vocabulary, in float32."""
    return dataclasses.replace(nanochat(layers), vocabulary=vocabulary, dtype=torch.float32)


def sizes_of(steps, slots):
    """The size of the batch of each step: it rises and falls between 1 and `slots`."""
    return [1 + 7 * (i + 1) * (i + 2) % slots for i in range(steps)]


def positions_of(steps, slots, capacity):
    """Where each slot's token of each step lies, [steps][slots]: contexts of several lengths, and one more for each step taken part in."""
    at, out = [(5 + i * 13) % (capacity - steps - 1) for i in range(slots)], []
    for size in sizes_of(steps, slots):
        out.append(list(at))
        at = [position + (i < size) for i, position in enumerate(at)]
    return out
