"""Optimized: Transformer Engine's layers, each scaling x anew."""
# needs: fp8, package transformer_engine
# instead: ch13:precisionfp8_te
# predicts: baseline 5.81 ms = layers * (2 * tokens * width**2 / bf16 + 4 * tokens * width / dram_copy) + 4 * tokens * width / dram_copy
# predicts: optimized 3.44 ms = layers * (2 * tokens * width**2 / fp8 + 9 * tokens * width / dram_copy) + 4 * tokens * width / dram_copy
# proves: kernel qqtst

import torch
import torch.nn.functional as F
import transformer_engine.pytorch as te
from transformer_engine.common.recipe import Float8CurrentScaling, Format

RECIPE = Float8CurrentScaling(fp8_format=Format.E4M3)
ROWS = 8  # Transformer Engine multiplies a multiple of so many


def layer_of(w):
    """A layer whose weight shares the memory of `w`."""
    layer = te.Linear(w.shape[1], w.shape[0], bias=False, params_dtype=w.dtype, device=w.device)
    layer.weight = torch.nn.Parameter(w.detach(), requires_grad=False)
    return layer


def prepare(x, weights, width):
    layers = [layer_of(w) for w in weights]
    more = -len(x) % ROWS

    @torch.no_grad()
    def stack(first):
        y = F.pad(x, (0, 0, 0, more)) if more else x
        with te.autocast(enabled=True, recipe=RECIPE):
            for layer in layers:
                y = layer(y, is_first_microbatch=first).relu_()
        return F.rms_norm(y[: len(x)], (width,))

    stack(True)  # quantizes the weights, and keeps them so
    return lambda: stack(False)
