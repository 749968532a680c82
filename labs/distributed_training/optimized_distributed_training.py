"""Optimized: gradients travel as e4m3 blocks, added in float32."""
# predicts: baseline 20.3 ms = 8 * width**2 * (layers * (7.33e-12 + 10 / dram_copy) + (12 * layers + 10) * tokens / bf16 + 1.4e-12) on h200
# predicts: optimized 19.0 ms = 8 * width**2 * (layers * (5.38e-12 + 15 / dram_copy) + (12 * layers + 10) * tokens / bf16 + 1.4e-12) on h200
# proves: kernel SendRecv
# proves: kernel quantize

from shared_e4m3_reduction import E4m3ReduceScatter
from shared_replicas import loss_of, named, stack
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard


def prepare(x, weights, mesh, ranks, micro, width, layers, loss_scale):
    grid = mesh(dp=ranks)
    model = stack(layers, width)
    for block in model:
        fully_shard(block, mesh=grid, reshard_after_forward=False)
        block.set_custom_reduce_scatter(E4m3ReduceScatter())
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
