"""Baseline: the batch decides into how many parts a context is split, and which kernel multiplies: other sums, other bits."""
# allows: alloc

from shared_fixed_product import library_product
from shared_logits import logits_of, share_of_same_bits
from shared_paged_decode import span_of


def prepare(q, keys, values, table, lengths, head, same):
    choices = {"span_of": span_of, "product": library_product}
    step = logits_of(q, keys, values, table, lengths, head, **choices)
    share = share_of_same_bits(q, keys, values, table, lengths, head, **choices)

    def stated():
        same.fill_(share)
        return step()

    return stated
