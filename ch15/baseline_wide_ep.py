"""Baseline: narrow: half of the ranks share out all experts, and the other half does so again."""
# allows: sync

import torch
import torch.distributed as dist
from shared_experts import expert_layer


def prepare(x, chosen, gates, up, down, mesh, ranks):
    grid = mesh(copy=2, ep=ranks // 2)  # neighbours, on the fastest links, share the last axis
    place = grid.get_local_rank("ep")

    def held(shard):
        """This rank's experts in a narrow group: as many as two neighbouring ranks have shards of."""
        shards = [torch.empty_like(shard) for _ in range(ranks)]
        dist.all_gather(shards, shard)
        return torch.cat(shards[2 * place : 2 * place + 2])

    ups, downs, group = held(up), held(down), grid["ep"].get_group()
    return lambda: expert_layer(x, chosen, gates, ups, downs, group)
