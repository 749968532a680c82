"""Optimized: one CUDA graph replays the loop: one launch, same products."""
# predicts: graph 0.161 ms = graph_launch + batch * 5e-6  (a guess: a product is two short kernels of 2.5 us, one after the other)
# proves: launches == 1

import torch

from common.graph import captured


def prepare(a, b, batch, m, n):
    c = torch.empty(batch, m, n, device=a.device)
    products = list(zip(a, b, c, strict=True))

    def loop():
        for left, right, product in products:
            torch.mm(left, right, out=product)
        return c

    return captured(loop)
