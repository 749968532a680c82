"""Linear layers whose three products read e4m3 values, with a scale for each tile or for each tensor: emulated, on any device."""

import torch
from torch.nn.functional import linear, pad

LARGEST = 448.0  # of e4m3
TILE = 128


def rounded(x, rows, cols):
    """float32 x [m, n] rounded to e4m3, with a scale for each `rows` x `cols` of it; the last tile of a side may be narrower."""
    m, n = x.shape
    tiles = pad(x, (0, -n % cols, 0, -m % rows)).unflatten(1, (-1, cols)).unflatten(0, (-1, rows))
    scale = tiles.abs().amax((1, 3), keepdim=True).clamp(min=1e-12) / LARGEST
    values = (tiles / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).float()
    return (values * scale).flatten(2, 3).flatten(0, 1)[:m, :n]


def product(a, b, recipe, weight):
    """a b^T in float32, rounded to BF16: rows of both lie along the sum. `weight`: b is one, whose tiles are square."""
    if recipe == "tensor":
        a, b = rounded(a, *a.shape), rounded(b, *b.shape)
    else:
        a, b = rounded(a, 1, TILE), rounded(b, TILE if weight else 1, TILE)
    return (a @ b.T).bfloat16().float()


class Rounded(torch.autograd.Function):
    """x w^T and its two gradients, each from operands rounded along its own sum."""

    @staticmethod
    def forward(ctx, x, w, recipe):
        ctx.save_for_backward(x, w)
        ctx.recipe = recipe
        return product(x, w, recipe, weight=True)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx = product(dy, w.T.contiguous(), ctx.recipe, weight=True)
        return dx, product(dy.T.contiguous(), x.T.contiguous(), ctx.recipe, weight=False), None


def linear_of(recipe):
    """A linear layer whose scales are those of `recipe`, "tiles" or "tensor"."""
    return lambda x, w: Rounded.apply(x.flatten(0, -2), w, recipe).unflatten(0, x.shape[:-1])


def linear_in_bf16(x, w):
    """The same in BF16."""
    return linear(x.bfloat16(), w.bfloat16()).float()
