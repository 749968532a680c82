"""A linear layer whose three products read NVFP4, forward and backward; values are rounded to NVFP4 and multiplied in float32."""

import torch

from common.block_formats import NVFP4_BLOCK, nvfp4_rounded


def hadamard(signs):
    """An orthogonal matrix [16, 16], float32: Hadamard's, its columns with random `signs`, 0 or 1 [16]."""
    h = torch.ones(1, 1, device=signs.device)
    while len(h) < NVFP4_BLOCK:
        h = torch.cat((torch.cat((h, h), 1), torch.cat((h, -h), 1)))
    return h * (2 * signs - 1) / NVFP4_BLOCK**0.5


def turned(x, turn):
    """Each 16 of a row, multiplied by `turn`: a product of two matrices that are turned alike is the same."""
    return (x.unflatten(1, (-1, NVFP4_BLOCK)) @ turn.T).flatten(1)


def rounded_product(a, b):
    """a b^T, [rows of a, rows of b], of both in NVFP4 along what is summed."""
    return nvfp4_rounded(a) @ nvfp4_rounded(b).T


def linear_of(product, turn=None):
    """A function linear(x, w) for x [..., k] and w [n, k], by `product`. `turn` is applied to both operands of the weight's gradient."""

    class Nvfp4Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return product(x.flatten(0, -2), w).view(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx, dy):
            x, w = ctx.saved_tensors
            dy, rows = dy.flatten(0, -2), x.flatten(0, -2)
            left, right = dy.T.contiguous(), rows.T.contiguous()
            if turn is not None:
                left, right = turned(left, turn), turned(right, turn)
            return product(dy.contiguous(), w.T.contiguous()).view_as(x), product(left, right)

    return Nvfp4Linear.apply


def training_step(x, w, dy, linear):
    """y = x w^T, and the gradients of x and of w for `dy`, that of y; w's over the root of the number of tokens."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = linear(x, w)
    dx, dw = torch.autograd.grad(y, (x, w), dy)
    return y.detach(), dx, dw * len(x) ** -0.5
