"""Optimized: sequences sorted by length: only those that go on step."""
# predicts: optimized = 0.526 x baseline  (half of the steps exist, so half of the flops; rows of x are copied once)
# proves: kernel Sort
# proves: counter smsp__sass_thread_inst_executed_op_ffma_pred_on.sum < 0.7 x baseline
# allows: sync

import torch


def prepare(x, u, lengths):
    times = torch.arange(len(x), device=x.device)[:, None]

    def step():
        order = lengths.argsort(descending=True)
        takers = (lengths > times).sum(dim=1).tolist()  # the host waits here, once, for how many sequences take each step
        h = torch.zeros_like(x[0])
        for now, n in zip(x, takers, strict=True):
            torch.tanh(torch.addmm(now[order[:n]], h[:n], u), out=h[:n])
        return torch.empty_like(h).index_copy_(0, order, h)

    return step
