"""Baseline: the cache is a tensor that torch.cat makes anew for every token, as transformers' DynamicCache does."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(past_keys, past_values, q, k, v):
    y = torch.empty_like(q)

    def step():
        keys, values = past_keys, past_values
        for t, answer in enumerate(y):
            keys, values = torch.cat((keys, k[t]), dim=2), torch.cat((values, v[t]), dim=2)
            answer.copy_(scaled_dot_product_attention(q[t], keys, values, enable_gqa=True))
        return y

    return step
