"""Optimized: stages of layers; microbatches travel, weights do not."""
# predicts: baseline 8.05 GB = (64 + 2 * 32 / 4) * width**2 * layers on h100  (four GPUs: all weights and gradients, its shard, the answer)
# predicts: optimized 4.28 GB = ((64 / 2 + 32 / 4) * width + 40 * tokens / chunks) * width * layers on h100  (four GPUs: half of the layers)
# proves: kernels in SendRecv > 25
# Of these, 24 all_to_alls and a gather hand out answers and tokens; microbatches add theirs.

import torch
from shared_stage import Stage, gathered, of_stage
from shared_stage_layout import stage_layout
from torch import distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def prepare(x, weights, mesh, ranks, layers, loss_scale, chunks, layout):
    sizes = stage_layout(layout, ranks, layers)
    grid = mesh(dp=sizes["dp"], pp=sizes["pp"], tp=sizes["tp"])
    dp, pp, tp = grid["dp"], grid["pp"], grid["tp"]
    stages, last = pp.size(), pp.size() - 1
    sharing = stages * tp.size()  # ranks whose tokens pass through one pipeline
    model = Stage(of_stage(weights, grid), tp, sizes["sp"])
    micro = x.new_empty(len(x) // chunks, x.shape[1], requires_grad=True)  # what stages send on; its gradient comes back
    stage = PipelineStage(model, pp.get_local_rank(), stages, x.device, micro, micro, group=pp.get_group())
    schedule = Schedule1F1B(stage, sharing * chunks, loss_fn=lambda y, _: loss_scale * y.square().mean())
    targets = torch.empty(sharing * chunks, device=x.device)  # the loss has none, but the schedule asks for them

    def step():
        tokens, losses = gathered(x, grid), []
        schedule.step(*([] if tokens is None else [tokens]), target=targets, losses=losses, return_outputs=False)
        of_ranks = torch.stack(losses).view(sharing, chunks).mean(1) if stage.is_last else x.new_empty(sharing)
        dist.broadcast(of_ranks, group=pp.get_group(), group_src=last)
        loss = of_ranks[tp.get_local_rank() * stages + pp.get_local_rank()]
        grads = []
        for weight in model.parameters():
            local = weight.grad.to_local() if tp.size() > 1 else weight.grad
            weight.grad = None
            mine = local.new_empty(len(local) // dp.size(), local.shape[1])
            dist.reduce_scatter_tensor(mine, local.div_(dp.size()), group=dp.get_group())
            grads.append([torch.empty_like(rows) for rows in mine.chunk(stages)])
            dist.all_to_all(grads[-1], list(mine.chunk(stages)), group=pp.get_group())  # of each stage's weight the rows of a rank's shard
        return loss.detach().clone(), *(shard for shards in zip(*grads, strict=True) for shard in shards)

    return step
