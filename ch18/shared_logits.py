"""The end of a decode step, from queries to logits, and how many logits of a request stay the same bits when it is alone."""

from shared_paged_decode import decoder
from torch.nn.functional import rms_norm


def logits_of(q, keys, values, table, lengths, head, span_of, product):
    """A step: attention in parts of `span_of(tokens, programs)` tokens, RMSNorm, and the product with `head`: [sequences, vocabulary]."""
    tokens, programs = table.shape[1] * keys.shape[1], len(q) * keys.shape[2]
    attend = decoder(q, keys, values, table, lengths, span_of(tokens, programs))

    def step():
        x = attend().flatten(1)
        return product(rms_norm(x, x.shape[1:], eps=1e-5), head)

    return step


def share_of_same_bits(q, keys, values, table, lengths, head, span_of, product):
    """The share of logits, of up to four requests, that have the same bits in the batch and alone; for queries of its own."""
    q, cache = q.new_empty(q.shape).normal_(std=3.0), (keys, values)
    together = logits_of(q, *cache, table, lengths, head, span_of, product)()
    some = range(min(4, len(q)))
    alone = [logits_of(q[i : i + 1], *cache, table[i : i + 1], lengths[i : i + 1], head, span_of, product)() for i in some]
    same = [(one[0] == together[i]).float().mean() for i, one in zip(some, alone, strict=True)]
    return sum(same) / len(same)
