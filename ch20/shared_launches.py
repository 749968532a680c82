"""Configurations of a product of few rows: the default, and those that a search may choose from."""

import itertools
from typing import NamedTuple


class Launch(NamedTuple):
    """Rows and columns of c per program, elements of k per K-step, warps, stages, and programs that share k.

    Of the stages one is multiplied, and the others are in flight.
    """

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int
    splits: int


DEFAULT = Launch(rows=16, cols=128, depth=64, warps=4, stages=3, splits=1)
LARGEST = 96 << 10  # bytes of shared memory for tiles; every GPU since Ampere has them

SPACE = [
    Launch(16, cols, depth, 4, stages, splits)
    for cols, depth, stages, splits in itertools.product((16, 32, 64, 128), (64, 128, 256), (3, 5), (1, 4, 8, 16))
    if 2 * (16 + cols) * depth * stages <= LARGEST
]
