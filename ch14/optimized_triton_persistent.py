"""Optimized: a program per SM: the next tile's loads hide a store."""
# guess: 1.1x, a tile's first loads and its store hide behind products, and a larger tile no longer makes them longer
# proves: grid < 0.1 x baseline
# has: tma_load_tile

from shared_descriptor_matmul import by_descriptors
from shared_tiles import Tile, multiprocessors


def prepare(a, b):
    tile = Tile(rows=128, cols=256, depth=64, warps=8, stages=3)  # the fastest of 13 tiles tried on an H100
    return by_descriptors(a, b, tile, programs=multiprocessors(a.device))
