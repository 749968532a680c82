"""Optimized: a 2-D mesh: TP inside, so FSDP gathers half of a block."""
# predicts: baseline 14.6 ms = 3 * 16 * width**2 * 3 / 4 * layers / 330e9 on h200  (four GPUs; a large all-reduce's rate)
# predicts: optimized 6.35 ms = (48 * width**2 * (tokens / bf16 + 1 / dram_copy) + 8 * tokens * width / 330e9 + 40e-6) * layers on h200
# proves: kernels in nccl > 1.5 x baseline

import torch.nn.functional as F
from shared_mlp_stack import HIDDEN, Mlp, named, stack
from torch.distributed._functional_collectives import all_gather_tensor_autograd, reduce_scatter_tensor_autograd
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard

from common.graph import captured

TP = 2


class TensorParallelMlp(Mlp):
    """Tokens stay with their rank. Its neighbours' come for the product with its hidden units, and sums over all units go back."""

    def __init__(self, width, hidden, group):
        super().__init__(width, hidden)
        self.group = group

    def forward(self, x):
        tokens = all_gather_tensor_autograd(F.layer_norm(x, x.shape[-1:]), 0, self.group)
        return x + reduce_scatter_tensor_autograd(F.gelu(tokens @ self.up.T) @ self.down, "sum", 0, self.group)


def prepare(x, weights, mesh, ranks, width, layers, loss_scale):
    grid = mesh(dp=ranks // TP, tp=TP)  # neighbours, on the fastest links, share the last axis
    model = stack(layers, width, HIDDEN * width // TP, TensorParallelMlp, group=grid["tp"])
    for block in model:
        fully_shard(block, mesh=grid["dp"])
    fully_shard(model, mesh=grid["dp"])
    model.load_state_dict({name: DTensor.from_local(shard, grid["dp"], [Shard(0)]) for name, shard in named(weights).items()}, assign=True)
    parameters = list(model.parameters())

    def step():
        model.zero_grad(set_to_none=True)
        loss = loss_scale * model(x).float().square().mean()
        (loss / TP).backward()  # TP adds its ranks' gradients up, FSDP takes the mean
        return loss.detach(), *(p.grad.to_local().clone() for p in parameters)

    replay = captured(step)
    yield replay
    replay.close()
