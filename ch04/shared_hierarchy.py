"""All-reduce as rounds of messages between GPUs in domains: a flat ring, or rings inside the domains and across them.

Ranks carry a schedule out (shared_messages.py), the simulation prices it (nvl72_simulation.py). `domains` are lists of GPU numbers.
Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.
"""

from itertools import pairwise
from typing import NamedTuple


class Message(NamedTuple):
    """Elements, from the first to one behind the last, that `target` adds to its own or puts in their place."""

    source: int
    target: int
    span: tuple[int, int]
    adds: bool


def cut(span, parts):
    """`span` in `parts` neighbouring spans, equal but for one element."""
    begin, size = span[0], span[1] - span[0]
    edges = [begin + size * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def turns(gpus, spans, shift, adds):
    """In each round every GPU of a ring sends a span to the next; the one at place i begins with span i + shift."""
    n = len(gpus)
    return [[Message(gpus[i], gpus[(i + 1) % n], spans[(i + shift - turn) % n], adds) for i in range(n)] for turn in range(n - 1)]


def ring(gpus, span):
    """All-reduce: a reduce-scatter leaves the sum of span i + 1 at place i, and an all-gather sends it round."""
    spans = cut(span, len(gpus))
    return turns(gpus, spans, 0, adds=True) + turns(gpus, spans, 1, adds=False)


def together(schedules):
    """Schedules of equally many rounds, at the same time."""
    return [[message for messages in rounds for message in messages] for rounds in zip(*schedules, strict=True)]


def flat(domains, elements, rings=1):
    """A ring over all GPUs, or several that share out the elements and leave each domain at another GPU."""
    orders = [[gpu for domain in domains for gpu in (*domain[r:], *domain[:r])] for r in range(rings)]
    return together([ring(order, span) for order, span in zip(orders, cut((0, elements), rings), strict=True)])


def hierarchical(domains, elements):
    """Reduce-scatter inside domains of one size, all-reduce across them of the part that a GPU then has, all-gather inside."""
    sizes = sorted({len(domain) for domain in domains})
    if len(sizes) > 1:
        raise ValueError(f"found domains of {' and '.join(map(str, sizes))} GPUs; expected one size")
    size = sizes[0]
    spans = cut((0, elements), size)
    across = [ring([domain[i] for domain in domains], spans[(i + 1) % size]) for i in range(size)]
    before, after = (together([turns(domain, spans, shift, shift == 0) for domain in domains]) for shift in (0, 1))
    return before + together(across) + after
