"""Optimized: programs share a context; log-sum-exp merges them."""
# reason: the baseline runs on one SM per key head, 8 of 132 at the shape `one`
# predicts @one: baseline 4.19 ms = longest / 64 * 4.1e-6  (a tile: 64 KB in flight of an SM, 1 us, and its products: assumed)
# predicts @one: optimized 0.09 ms = 4 * longest * kv_heads * dim / dram_read + 6e-6 on h100  (the cache once; start and merge assumed)
# proves: kernel merge
# proves: grid in attend > baseline

from shared_paged_decode import TILE, decoder

PROGRAMS = 4 * 132  # what the SMs of an H100 hold at once, four each


def span_of(tokens, programs):
    """Tokens of a part, a multiple of the tile, so that `programs` times the parts fill the GPU."""
    parts = max(1, PROGRAMS // programs)
    return -(-tokens // (parts * TILE)) * TILE


def prepare(q, keys, values, table, lengths):
    tokens = table.shape[1] * keys.shape[1]
    return decoder(q, keys, values, table, lengths, span=span_of(tokens, len(q) * keys.shape[2]))
