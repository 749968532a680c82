"""Optimized: a graph per bucket of batch sizes: less padding."""
# predicts: baseline 11.3 ms = steps * (layers * 27e-6 + slots * (2.7e8 / fp32_matmul + layers * capacity * 6144 / dram_read)) on h100
# predicts: optimized 7.78 ms = steps * (layers * 27e-6 + 38 * (2.7e8 / fp32_matmul + layers * capacity * 6144 / dram_read)) on h100
# proves: blocks < 0.9 x baseline
# has: graph_nodes >= 200

from shared_bucketed_decode import decoder


def prepare(weights, config, keys, values, tokens, positions, sizes):
    slots = keys.shape[1]
    powers = [1 << power for power in range(slots.bit_length())]  # 1, 2, 4, ... up to `slots`
    return decoder(weights, config, keys, values, tokens, positions, sizes, buckets=sorted({*powers, slots}))
