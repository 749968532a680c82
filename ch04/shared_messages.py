"""A schedule of messages (shared_hierarchy.py), carried out by ranks."""

import torch.distributed as dist


def halves(ranks):
    """The ranks in two virtual domains, neighbours together."""
    return [list(range(ranks // 2)), list(range(ranks // 2, ranks))]


def all_reduce(rounds, rank, domains, buffer, inbox):
    """Send and receive what `rank` has to on `buffer`; `inbox` is as large. Returns the bytes sent to other domains. Collective."""
    mine = next(domain for domain in domains if rank in domain)
    crossed = 0
    for messages in rounds:
        transfers, sums = [], []
        for message in messages:
            part = slice(*message.span)
            if part.start == part.stop:
                continue
            if message.source == rank:
                transfers.append(dist.P2POp(dist.isend, buffer[part], message.target))
                crossed += 0 if message.target in mine else buffer[part].nbytes
            if message.target == rank:
                transfers.append(dist.P2POp(dist.irecv, (inbox if message.adds else buffer)[part], message.source))
                sums += [part] if message.adds else []
        for work in dist.batch_isend_irecv(transfers) if transfers else ():
            work.wait()
        for part in sums:
            buffer[part] += inbox[part]
    return crossed
