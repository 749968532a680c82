"""Optimized: gathers along rows, then transposes what it has."""

# predicts: along_rows 0.309 ms = 4 * features * (vocabulary + 3 * tokens) / dram_copy on h200  (all of weight; a transposition)
# proves: counter dram__bytes_read.sum < 0.5 x baseline
import torch


def prepare(weight, token, tokens, features):
    part = torch.empty(features, tokens, dtype=weight.dtype, device=weight.device)
    y = torch.empty(tokens, features, dtype=weight.dtype, device=weight.device)

    def step():
        torch.index_select(weight, 1, token, out=part)
        return y.copy_(part.T)

    return step
