"""Optimized: the cache is sliced to the longest sequence."""
# proves: counter dram__bytes_read.sum < 0.5 x baseline

from baseline_flexdecoding import decode


def prepare(q, k, v, keys, values, lengths, longest):
    slice_to = longest + -longest % 8  # tokens: a row of the mask is whole pieces of 16 bytes
    keys, values = keys[:, :, :slice_to], values[:, :, :slice_to]  # views: what a step appends is in the cache
    return lambda: decode(q, k, v, keys, values, lengths)
