"""The products around latent attention: queries times the key matrix before it, averages times the value matrix behind it."""

import torch


def between_products(q, k_up, v_up, kv_rank, attend):
    """A step: queries as vectors of the latents' width, what `attend` makes of them, and its averages of latents as values."""
    nope = k_up.shape[1]
    absorbed = q.new_empty(*q.shape[:2], kv_rank + q.shape[2] - nope)
    y = q.new_empty(*q.shape[:2], nope)

    def step():
        torch.bmm(q[..., :nope].transpose(0, 1), k_up, out=absorbed[..., :kv_rank].transpose(0, 1))  # cuBLAS writes with strides
        absorbed[..., kv_rank:] = q[..., nope:]  # last: FlashMLA may begin before a product in front of it ends, and not before a copy does
        torch.bmm(attend(absorbed).transpose(0, 1), v_up.mT, out=y.transpose(0, 1))
        return y

    return step
