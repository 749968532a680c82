"""norm, quantization to e4m3 and product are one kernel."""

from shared_norm_product import product_of
from shared_paged_prefill import steps_of


def prepare(prompt, queries, keys, values, table, lengths, norm, weight, context, chunk):
    attended, steps = steps_of(prompt, queries, keys, values, table, lengths, context, chunk)
    y = weight.new_empty(*queries.shape[:2], len(weight))
    multiply = product_of(norm, weight)

    def step():
        for out, (prefill, decode) in zip(y, steps, strict=True):
            prefill()
            multiply(decode().flatten(1), out)
        return attended, y

    return step
