"""Optimized: one cache with room to grow; a token is written into it."""
# predicts: baseline 2.85 ms = tokens * 4 * batch * kv_heads * context * dim * (2 / dram_copy + 1 / dram_read + 3 / l2) on h100
# predicts: optimized 1.45 ms = tokens * 4 * batch * kv_heads * context * dim * (1 / dram_read + 3 / l2) on h100
# proves: not kernel CatArrayBatchedCopy

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(past_keys, past_values, q, k, v, context, tokens):
    y = torch.empty_like(q)
    batch, heads, _, dim = past_keys.shape
    cache = past_keys.new_empty(2, batch, heads, context + tokens, dim)
    cache[0, :, :, :context] = past_keys
    cache[1, :, :, :context] = past_values

    def step():
        for t, answer in enumerate(y):
            end = context + t + 1
            cache[0, :, :, end - 1 : end] = k[t]
            cache[1, :, :, end - 1 : end] = v[t]
            answer.copy_(scaled_dot_product_attention(q[t], cache[0, :, :, :end], cache[1, :, :, :end], enable_gqa=True))
        return y

    return step
