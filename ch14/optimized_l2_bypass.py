"""Optimized: the table evicted last too: the L2 keeps more of it."""
# guess: 1.14x, as in the search for the size of the table on an H100; no equation says how many rows the L2 keeps
# proves: /\bLDG\.E\.EF\b/
# proves: /\bLDG\.E\.EL\b/

from shared_l2_bypass import adder


def prepare(x, table, ids):
    return adder(x, table, ids, stream="evict_first", keep="evict_last")
