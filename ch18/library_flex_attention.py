"""Library: PyTorch's attention of sequences of several lengths (FlashAttention), which takes where documents start, and a window."""
# needs: gpus 1

import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import pad


def prepare(q, k, v, document, window):
    lengths = document.unique_consecutive(return_counts=True)[1]
    starts, longest = pad(lengths.cumsum(0, dtype=torch.int32), (1, 0)), int(lengths.max())
    behind = (window - 1, 0)  # how far before and after its own token a query sees

    def step():
        packed = (x[0].transpose(0, 1) for x in (q, k, v))  # [tokens, heads, dim]
        y = varlen_attn(*packed, starts, starts, longest, longest, window_size=behind)
        return y.transpose(0, 1).contiguous()[None]

    return step
