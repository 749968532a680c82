"""Optimized: eight worker processes decode, each on a core."""
# predicts: optimized = 0.14 x baseline  (eight workers on eight cores, and the copy of each batch)
# allows: processes

from shared_images import epochs


def prepare(file, order, flips, size, batch, workers):
    return epochs(file, order, flips, size, batch, num_workers=workers, prefetch_factor=4, persistent_workers=True)
