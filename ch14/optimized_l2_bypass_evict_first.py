"""Optimized: tokens evicted first: their lines go before the table's."""
# predicts: evict_first = 0.9 x baseline  (a guess: lines that go first are enough to keep the table, most of the pair's guess)
# proves: /\bLDG\.E\.EF\b/

from shared_l2_bypass import adder


def prepare(x, table, ids):
    return adder(x, table, ids, stream="evict_first", keep="")
