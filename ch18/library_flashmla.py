"""Library: cuBLAS's two batched products, and a softmax, in fp16.

Scores are written to memory between them.
Scores that are written in bf16 cost most of the tolerance. fp16 has three bits more in the same bytes, and the range suffices.
"""

import torch


def prepare(q, latent, k_up, v_up, context, heads, kv_rank, rope):
    sequences, nope = len(q), k_up.shape[1]
    kept, keys_up, values_up = latent.half(), k_up.half(), v_up.half()
    absorbed = torch.empty(sequences, heads, kv_rank + rope, dtype=torch.float16, device=q.device)
    scores = torch.empty(sequences, heads, context, dtype=torch.float16, device=q.device)

    def step():
        absorbed[..., :kv_rank] = torch.bmm(q[..., :nope].half().transpose(0, 1), keys_up).transpose(0, 1)
        absorbed[..., kv_rank:] = q[..., nope:]
        torch.baddbmm(scores, absorbed, kept.mT, beta=0, alpha=q.shape[2] ** -0.5, out=scores)  # beta = 0: what is there is not read
        mixed = torch.bmm(scores.softmax(-1), kept[..., :kv_rank])
        return torch.bmm(mixed.transpose(0, 1), values_up.mT).transpose(0, 1).to(q.dtype, memory_format=torch.contiguous_format)

    return step
