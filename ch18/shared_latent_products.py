"""The products around latent attention: queries times the key matrix before it, averages times the value matrix behind it."""

import torch


def between_products(q, k_up, v_up, absorbed, attend):
    """A step: queries as vectors of the latents' width, into `absorbed`, what attend() makes of them, and its averages as values.

    absorbed [sequences, heads, kv_rank], which may have strides; attend() gives averages of the same shape.
    """
    nope = k_up.shape[1]
    y = q.new_empty(*q.shape[:2], nope)

    def step():
        torch.bmm(q[..., :nope].transpose(0, 1), k_up, out=absorbed.transpose(0, 1))  # cuBLAS writes with strides
        torch.bmm(attend().transpose(0, 1), v_up.mT, out=y.transpose(0, 1))
        return y

    return step
