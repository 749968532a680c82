"""A stage of a pipeline: some layers of the stack of shared_mlp_stack.py, whose hidden units its ranks of the axis tp share out."""

import torch
import torch.nn.functional as F
from shared_mlp_stack import block, named
from torch import distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard


class Stage(nn.Module):
    """`weights` are this rank's units of each matrix. With `grid` of several ranks they are DTensors; `sp` shards tokens between blocks."""

    def __init__(self, weights, grid, sp):
        super().__init__()
        self.grid = grid if grid.size() > 1 else None
        self.between = [Shard(0) if sp > 1 else Replicate()]
        held = [DTensor.from_local(w, grid, [Shard(0)]) for w in weights] if self.grid else weights
        self.weights = nn.ParameterList(map(nn.Parameter, held))

    def forward(self, stream):
        layers = list(zip(self.weights[::2], self.weights[1::2], strict=True))
        if self.grid is None:
            for up, down in layers:
                stream = block(stream, up, down)
            return stream
        stream = DTensor.from_local(stream, self.grid, [Replicate()]).redistribute(placements=self.between)
        for up, down in layers:
            tokens = F.layer_norm(stream, stream.shape[-1:]).redistribute(placements=[Replicate()])
            stream = stream + (F.gelu(tokens @ up.T) @ down).redistribute(placements=self.between)
        return stream.redistribute(placements=[Replicate()]).to_local()


def of_stage(weights, grid):
    """What a rank holds of the weights, of which every rank has a shard: the units of its place on tp, in the layers of its stage."""
    pp, tp = grid["pp"], grid["tp"]
    layers = len(weights) // pp.size()
    held = []
    for i, shard in enumerate(named(weights).values()):
        shards = [torch.empty_like(shard) for _ in range(grid.size())]
        dist.all_gather(shards, shard)
        if i // 2 // layers == pp.get_local_rank():
            held.append(torch.cat(shards[tp.get_local_rank() :: tp.size()]))
    return held


def gathered(x, grid):
    """The tokens of all ranks of a pipeline, of its ranks of tp one after the other; in the first stage alone, else None."""
    pp, tp = grid["pp"], grid["tp"]
    parts = [torch.empty_like(x) for _ in range(pp.size())] if pp.get_local_rank() == 0 else None
    dist.gather(x, parts, group=pp.get_group(), group_dst=0)
    if parts is None:
        return None
    mine = torch.cat(parts)
    whole = mine.new_empty(tp.size() * mine.shape[0], mine.shape[1])
    dist.all_gather_into_tensor(whole, mine, group=tp.get_group())
    return whole
