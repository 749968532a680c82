"""Optimized: programs share a context; log-sum-exp merges them."""
# reason: the baseline runs on one SM per key head and sequence, 32 of 132, with few loads in flight on each
# predicts: baseline 2.1 ms = longest / 64 * 4.1e-6  (a tile: 32 KB of keys and values, their latency and products: assumed)
# predicts: optimized 0.173 ms = 4 * sequences * longest * kv_heads * dim / dram_read + 6e-6 on h100  (two launches: assumed)
# predicts@one: baseline 4.2 ms = longest / 64 * 4.1e-6
# predicts@one: optimized 0.0897 ms = 4 * sequences * longest * kv_heads * dim / dram_read + 6e-6 on h100
# proves: kernel merge
# proves: grid in attend > baseline

from shared_context_parts import decoder


def prepare(q, keys, values, table, lengths):
    return decoder(q, keys, values, table, lengths)  # parts that fill the GPU
