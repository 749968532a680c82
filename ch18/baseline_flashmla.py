"""Baseline: PyTorch's attention: heads are queries of one key."""

import torch
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, latent, k_up, v_up, kv_rank):
    nope, keys = k_up.shape[1], latent[:, None]  # one key head, [sequences, 1, context, kv_rank + rope]

    def step():
        absorbed = torch.cat((torch.einsum("shn,hnr->shr", q[..., :nope], k_up), q[..., nope:]), -1)
        mixed = scaled_dot_product_attention(absorbed[:, None], keys, keys[..., :kv_rank], scale=q.shape[2] ** -0.5)
        return torch.einsum("shr,hvr->shv", mixed[:, 0], v_up).contiguous()

    return step
