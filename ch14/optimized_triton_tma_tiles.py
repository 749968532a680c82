"""Optimized: tiles by tensor descriptor: the TMA computes addresses."""
# predicts: tiles = 0.97 x baseline  (a guess: wgmma needs little of the issue slots and registers that addresses take)
# proves: tma_load_tile

from shared_descriptor_matmul import by_descriptors
from shared_tiles import Tile


def prepare(a, b):
    return by_descriptors(a, b, Tile(rows=256, cols=128, depth=64, warps=8, stages=3))
