"""The end of a decode step, from queries to logits, and how many logits of a request stay the same bits when it is alone."""

from torch.nn.functional import rms_norm


def logits_of(q, keys, values, table, lengths, head, attention, product):
    """A step: attention, RMSNorm, and the product with `head`: [sequences, vocabulary]."""
    attend = attention(q, keys, values, table, lengths)

    def step():
        x = attend().flatten(1)
        return product(rms_norm(x, x.shape[1:], eps=1e-5), head)

    return step


def share_of_same_bits(q, keys, values, table, lengths, head, tokens, attention, product):
    """The share of logits that have the same bits in the batch and alone, for queries of its own. `tokens` are the lengths, for the host.

    Alone, a request has a table of its own pages, and no page behind.
    """
    q, cache, page = q.new_empty(q.shape).normal_(std=3.0), (keys, values), keys.shape[1]
    together = logits_of(q, *cache, table, lengths, head, attention, product)()
    same = []
    for i, length in enumerate(tokens):
        own = table[i : i + 1, : -(-length // page)].contiguous()
        alone = logits_of(q[i : i + 1], *cache, own, lengths[i : i + 1], head, attention, product)()
        same.append((alone[0] == together[i]).float().mean())
    return sum(same) / len(same)
