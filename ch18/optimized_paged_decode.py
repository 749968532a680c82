"""Optimized: the kernel looks pages up itself: nothing is gathered."""
# predicts: baseline 1.9 ms = 4 * kv_heads * dim * sequences * (14336 / dram_copy + 8192 / dram_read) on h100  (6144 in, 8192 out, 8192 in)
# predicts: optimized 0.502 ms = 4 * kv_heads * dim * sequences * 6144 / dram_read on h100  (6144 tokens a sequence, read once)
# proves: kernel attend
# proves: launches == 1

from shared_paged_decode import decoder


def prepare(q, keys, values, table, lengths):
    whole = table.shape[1] * keys.shape[1]  # one program for a whole context
    return decoder(q, keys, values, table, lengths, span=whole, tile=32, warps=1, stages=6)  # small programs, many loads in flight
