"""Optimized: a program per SM: the TMA loads on across tiles."""
# guess: 1.17x, by what these two kernels took as sides of triton_matmul and triton_persistent
# proves: tma_load_tile
# proves: grid < 0.1 x baseline

from shared_descriptor_matmul import by_descriptors
from shared_tiles import Tile, multiprocessors


def prepare(a, b):
    tile = Tile(rows=128, cols=256, depth=64, warps=8, stages=3)  # the fastest of 13 tiles tried on an H100
    return by_descriptors(a, b, tile, programs=multiprocessors(a.device))
