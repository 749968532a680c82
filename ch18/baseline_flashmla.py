"""Baseline: the cache holds the expanded keys and values of every head: 640 bytes per token and head, for PyTorch's attention."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, latent, k_up, v_up, kv_rank):
    kept, shared = latent[..., :kv_rank], latent[:, None, :, kv_rank:]
    expanded = torch.einsum("str,hnr->shtn", kept, k_up)
    keys = torch.cat((expanded, shared.expand(-1, expanded.shape[1], -1, -1)), -1)
    values = torch.einsum("str,hvr->shtv", kept, v_up).contiguous()

    def step():
        return scaled_dot_product_attention(q[:, :, None], keys, values)[:, :, 0]

    return step
