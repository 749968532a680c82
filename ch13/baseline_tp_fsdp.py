"""Baseline: FSDP alone: every rank gathers all parameters of a block, for its own few tokens."""

from shared_mlp_stack import HIDDEN, named, stack
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard

from common.graph import captured


def prepare(x, weights, mesh, ranks, width, layers, loss_scale):
    grid = mesh(dp=ranks)
    model = stack(layers, width, HIDDEN * width)
    for block in model:
        fully_shard(block, mesh=grid)
    fully_shard(model, mesh=grid)
    model.load_state_dict({name: DTensor.from_local(shard, grid, [Shard(0)]) for name, shard in named(weights).items()}, assign=True)
    parameters = list(model.parameters())

    def step():
        model.zero_grad(set_to_none=True)
        loss = loss_scale * model(x).float().square().mean()
        loss.backward()
        return loss.detach(), *(p.grad.to_local().clone() for p in parameters)

    replay = captured(step)
    yield replay
    replay.close()
