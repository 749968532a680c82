"""Optimized: fused=True: one pass reads and writes every value once."""
# predicts: baseline 1.24 ms = 80 * 59824128 / (0.9 * dram_copy)  (bytes per parameter of eight passes; 0.9 of DRAM's rate assumed)
# predicts: optimized 433 us = 28 * 59824128 / (0.9 * dram_copy)  (bytes per parameter of one pass)
# proves: kernel FusedAdamMathFunctor
# proves: launches < 0.5 x baseline

import torch

STEPS_DONE = 100_000.0  # bias corrections are 1 by then


def prepare(params, grads, exp_avg, exp_avg_sq):
    optimizer = torch.optim.AdamW(params, fused=True)
    for p, g, m, v in zip(params, grads, exp_avg, exp_avg_sq, strict=True):
        p.grad = g
        optimizer.state[p] = {"step": torch.tensor(STEPS_DONE, device=p.device), "exp_avg": m, "exp_avg_sq": v}
    return optimizer.step
