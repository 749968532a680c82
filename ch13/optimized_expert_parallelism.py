"""Optimized: tokens sorted by expert, and one grouped product for all."""
# predicts: baseline 2.40 ms = experts * (14 * launch + 24e-6)  (launches an expert, and a wait to learn how many tokens it has)
# predicts: optimized 0.882 ms = 6 * tokens * top * hidden * ffn / (0.7 * bf16) + 28 * tokens * top * hidden / dram_copy
# proves: launches < 0.15 x baseline
# proves: calls cudaStreamSynchronize == 0

import torch
import torch.nn.functional as F


def prepare(x, chosen, gates, up, down):
    tokens, top = chosen.shape
    narrow = torch.uint8 if len(up) <= 256 else torch.int16  # a radix sort passes once over its keys for each of their bytes
    numbers, places = torch.arange(len(up), dtype=narrow, device=x.device), torch.arange(tokens * top, device=x.device)

    def step():
        expert, order = chosen.flatten().to(narrow).sort()
        ends = torch.searchsorted(expert, numbers, right=True, out_int32=True)  # of each expert's rows, on the device
        opened, values = F.grouped_mm(x[order // top], up.mT, offs=ends).chunk(2, dim=1)
        answers = F.grouped_mm(F.silu(opened) * values, down.mT, offs=ends)
        back = torch.empty_like(order).scatter_(
            0, order, places
        )  # where each token's answers are: rows are read, not written, out of order
        return torch.bmm(gates[:, None], answers[back].view(tokens, top, -1)).squeeze(1)

    return step
