"""Optimized: torch.bmm: all products in one launch that fills the GPU."""
# predicts: baseline 0.307 ms = batch * 9.6e-6  (the host's time per launch, assumed)
# predicts: optimized 0.0356 ms = 9.6e-6 + 26e-6  (one launch, then 1.1 GFLOP at 80 % of 51 TFLOP/s)
# proves: launches == 1

import torch


def prepare(a, b, batch, m, n):
    c = torch.empty(batch, m, n, device=a.device)

    def step():
        torch.bmm(a, b, out=c)
        return c

    return step
