"""Optimized: weight stored token-major once: whole sectors are used."""

# predicts: baseline 0.562 ms = (32 + 4) * features * tokens / dram_copy  (a sector read and 4 bytes written per float)
# predicts: optimized 0.125 ms = (4 + 4) * features * tokens / dram_copy
# predicts: counter dram__bytes_read.sum = 0.125 x baseline
# reason: a strided float moves 64 bytes, two DRAM sectors of a GPU or one cache line of a CPU; a CPU also misses its TLB
# proves: counter dram__bytes_read.sum < 0.5 x baseline
import torch


def prepare(weight, token, tokens, features):
    rows = weight.T.contiguous()
    y = torch.empty(tokens, features, dtype=weight.dtype, device=weight.device)

    def step():
        return torch.index_select(rows, 0, token, out=y)

    return step
