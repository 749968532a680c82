"""Linear layers with delayed scaling: e4m3 values, a scale per tensor from earlier steps. Emulated, on any device."""

import torch

LARGEST = 448.0  # of e4m3
HISTORY = 16  # steps whose largest values make a scale


class Maxima:
    """A scale for each tensor, by name, from its largest values in the last HISTORY steps: delayed scaling. The first step has its own."""

    def __init__(self):
        self.history = {}

    def rounded(self, name, x):
        """float32 x rounded to e4m3; values that outgrew the history become e4m3's largest."""
        largest = x.abs().amax()
        scale = torch.stack(self.history.get(name) or [largest]).amax().clamp(min=1e-12) / LARGEST
        self.history[name] = [*self.history.get(name, []), largest][-HISTORY:]
        return (x / scale).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn).float() * scale


class RoundedLate(torch.autograd.Function):
    """x w^T and its two gradients, from operands that `maxima` rounds; `name` is the layer's."""

    @staticmethod
    def forward(ctx, x, w, maxima, name):
        x, w = maxima.rounded((name, "x"), x.detach()), maxima.rounded((name, "w"), w.detach())
        ctx.save_for_backward(x, w)
        ctx.maxima, ctx.name = maxima, name
        return (x @ w.T).bfloat16().float()

    @staticmethod
    def backward(ctx, dy):
        (x, w), dy = ctx.saved_tensors, ctx.maxima.rounded((ctx.name, "dy"), dy)
        return (dy @ w).bfloat16().float(), (dy.T @ x).bfloat16().float(), None, None


def delayed_linear():
    """A linear layer with histories of its own, which knows a layer by its weight's memory."""
    maxima = Maxima()
    return lambda x, w: RoundedLate.apply(x.flatten(0, -2), w, maxima, w.data_ptr()).unflatten(0, x.shape[:-1])
