"""Baseline: FSDP2 accumulates micro-batches, then reduce-scatters in bf16."""

from shared_replicas import loss_of, named, stack
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard


def prepare(x, weights, mesh, ranks, micro, width, layers, loss_scale):
    grid = mesh(dp=ranks)
    model = stack(layers, width)
    for block in model:
        fully_shard(block, mesh=grid, reshard_after_forward=False)
    fully_shard(model, mesh=grid, reshard_after_forward=False)
    model.load_state_dict({name: DTensor.from_local(shard, grid, [Shard(0)]) for name, shard in named(weights).items()}, assign=True)
    parameters = list(model.parameters())

    def step():
        model.zero_grad(set_to_none=True)
        total = 0
        for i, batch in enumerate(x):
            last = i == micro - 1
            model.set_requires_gradient_sync(last)
            model.set_reshard_after_backward(last)
            model.set_is_last_backward(last)
            loss = loss_of(model, batch, loss_scale / micro)
            loss.backward()
            total = total + loss.detach()
        return total, *(p.grad.to_local().clone() for p in parameters)

    return step
