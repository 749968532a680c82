"""Optimized: mark_dynamic: one graph with a symbol for the length."""
# predicts: baseline 13 s = 3 + 2.5 * lengths on h200  (the compiler's first call; trace, lower and compile a length: assumed)
# predicts: optimized 6 s = 3 + 3 on h200  (one graph; a symbol takes longer to trace and lower than a constant: assumed)

import torch
from torch.nn.functional import rms_norm, silu


@torch.compile(fullgraph=True)
def pooled(x, gate, up):
    x = rms_norm(x, x.shape[1:])
    return (silu(x @ gate) * (x @ up)).amax(dim=0)


def prepare(sequences, gate, up):
    for x in sequences:
        torch._dynamo.mark_dynamic(x, 0)
    return lambda: torch.stack([pooled(x, gate, up) for x in sequences])
