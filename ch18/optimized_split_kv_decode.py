"""Optimized: programs share a context; log-sum-exp merges them."""
# reason: the baseline runs on one SM per key head, 8 of 132 at the shape `one`
# predicts: baseline 4.19 ms = longest / 64 * 4.1e-6  (a tile: 32 KB of keys and values, their latency and products: assumed)
# predicts: optimized 0.0897 ms = 4 * longest * kv_heads * dim / dram_read + 6e-6 on h100  (the cache once; two launches: assumed)
# proves: kernel merge
# proves: grid in attend > baseline

from shared_paged_decode import decoder, span_of


def prepare(q, keys, values, table, lengths):
    tokens = table.shape[1] * keys.shape[1]
    programs = len(q) * keys.shape[2]  # without splitting
    return decoder(q, keys, values, table, lengths, span=span_of(tokens, programs))
