"""Optimized: chunks and tokens of all steps are one graph."""
# predicts: baseline 7.02 ms = context / chunk * 20 * 6 * launch on h100  (20 operators a step, six bare launches each: assumed)
# predicts: optimized 0.784 ms = context / chunk * (109e6 / dram_read + 15e-6) on h100  (50.3 MB of keys and values, 58.7 MB of weights)
# proves: graph_nodes >= 40
# proves: kernel attend_chunk
# has: kernel norm_product

from shared_norm_product import product_of
from shared_paged_prefill import steps_of

from common.graph import captured


def prepare(prompt, queries, keys, values, table, lengths, norm, weight, context, chunk):
    attended, steps = steps_of(prompt, queries, keys, values, table, lengths, context, chunk)
    y = weight.new_empty(*queries.shape[:2], len(weight))
    multiply = product_of(norm, weight)

    def step():
        for out, (prefill, decode) in zip(y, steps, strict=True):
            prefill()
            multiply(decode().flatten(1), out)
        return attended, y

    return captured(step)
