"""Optimized: a hook all-reduces each gradient as soon as backward has it."""
# predicts: baseline 18.7 ms = 8 * width**2 * tokens * (6 * layers - 1) / (0.8 * bf16) + 16 * width**2 * layers / 250e9 on h100
# predicts: optimized 16.2 ms = 8 * width**2 * (tokens * (6 * layers - 1) / (0.8 * bf16) + (layers * 48 / 132 + 1) / 250e9) on h100
# proves: overlap >= 0.5

import torch.distributed as dist
from shared_mlp_stack import stack


def prepare(x, weights, ranks, loss_scale):
    model = stack(weights)
    parameters = list(model.parameters())
    transfers = []
    for p in parameters:
        p.register_post_accumulate_grad_hook(lambda p: transfers.append(dist.all_reduce(p.grad, async_op=True)))

    def step():
        model.zero_grad(set_to_none=True)
        transfers.clear()
        loss = loss_scale * model(x).float().square().mean()
        (loss / ranks).backward()  # the sum over ranks is the mean then
        for transfer in transfers:
            transfer.wait()  # with NCCL the stream waits, not the host
        return loss.detach(), *(p.grad for p in parameters)

    return step
