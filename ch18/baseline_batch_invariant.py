"""Baseline: the batch decides into how many parts a context is split, and which kernel multiplies: other sums, other bits."""
# allows: alloc

from shared_fixed_product import library_product
from shared_logits import logits_of, share_of_same_bits
from shared_paged_cache import lengths_of
from shared_paged_decode import decoder, span_of


def attention(q, keys, values, table, lengths):
    tokens, programs = table.shape[1] * keys.shape[1], len(q) * keys.shape[2]
    return decoder(q, keys, values, table, lengths, span_of(tokens, programs))


def prepare(q, keys, values, table, lengths, head, same, sequences, shortest, longest):
    choices = {"attention": attention, "product": library_product}
    step = logits_of(q, keys, values, table, lengths, head, **choices)
    tokens = lengths_of(sequences, shortest, longest)
    share = share_of_same_bits(q, keys, values, table, lengths, head, tokens, **choices)

    def stated():
        same.fill_(share)
        return step()

    return stated
