"""Optimized: torch.bmm does all of them in one launch that fills the GPU."""
# expects: 8.6x, 32 launches of 9.6 us against one, and then 1.1 GFLOP in 26 us: 80 % of 51 TFLOP/s
# proves: launches == 1

import torch


def prepare(a, b, batch, m, n):
    c = torch.empty(batch, m, n, device=a.device)

    def step():
        torch.bmm(a, b, out=c)
        return c

    return step
