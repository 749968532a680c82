"""Where experts lie: by the loads of an earlier batch, the heaviest first, and in copies where ranks have spare slots."""

from itertools import chain

import torch
import torch.distributed as dist


def copies_of(load, slots, ranks):
    """How many of `slots` each expert gets, `ranks` at most: each spare slot is for the expert whose copies have most to do."""
    copies = [1] * len(load)
    for _ in range(slots - len(load)):
        few = [expert for expert in range(len(load)) if copies[expert] < ranks]
        copies[max(few, key=lambda expert: load[expert] / copies[expert])] += 1
    return copies


def placed(load, ranks, local):
    """The expert of every slot, `local` on each rank: the heaviest copy first, to the least busy rank without a copy of it, or any."""
    copies = copies_of(load, ranks * local, ranks)
    pieces = sorted(((load[e] / copies[e], e) for e in range(len(load)) for _ in range(copies[e])), reverse=True)
    held, busy = [[] for _ in range(ranks)], [0.0] * ranks
    for weight, expert in pieces:
        free = [rank for rank in range(ranks) if len(held[rank]) < local]
        rank = min(free, key=lambda rank: (expert in held[rank], busy[rank]))
        held[rank].append(expert)
        busy[rank] += weight
    return list(chain(*held))


def gathered(shard, ranks):
    shards = [torch.empty_like(shard) for _ in range(ranks)]
    dist.all_gather(shards, shard)
    return torch.cat(shards)


def rearranged(chosen, up, down, experts, spare):
    """The slot of each choice, as a function of choices, and the weights of this rank's slots. All ranks' `chosen` tell the loads."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    history = torch.bincount(chosen.flatten(), minlength=experts)  # of another batch than those that are timed
    dist.all_reduce(history)
    local = min(experts // ranks + spare, experts)
    held = torch.tensor(placed(history.tolist(), ranks, local), device=chosen.device)
    mine = held[rank * local : (rank + 1) * local]
    slots, first = held.sort(stable=True)[1], torch.searchsorted(held.sort()[0], torch.arange(experts, device=chosen.device))
    copies = held.bincount(minlength=experts)
    token = torch.arange(len(chosen), device=chosen.device)[:, None]

    def slot_of(chosen):
        return slots[first[chosen] + token % copies[chosen]]  # tokens take copies one after another

    return slot_of, gathered(up, ranks)[mine], gathered(down, ranks)[mine]
