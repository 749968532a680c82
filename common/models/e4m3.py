"""Products in e4m3: a scale for each output channel of a weight, found once, and one for each token, found in every call."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from common.models.config import Config
from common.models.layers import Weights, activated

LARGEST = 448.0  # of e4m3

Rows = tuple[torch.Tensor, torch.Tensor]


def quantized(x: torch.Tensor) -> Rows:
    """Rows in e4m3, and the scale of each: [rows, 1] in float32."""
    scale = x.abs().amax(1, keepdim=True).float().clamp(min=1e-12) / LARGEST
    return (x / scale).to(torch.float8_e4m3fn), scale


def packed(layer: Mapping[str, torch.Tensor]) -> dict[str, Rows | torch.Tensor]:
    """A layer's weights with its matrices quantized."""
    return {name: quantized(w) if w.dim() == 2 else w for name, w in layer.items()}


def linear(x: torch.Tensor, w: Rows) -> torch.Tensor:
    """x, [rows, in], times the transpose of a quantized weight, in x's dtype."""
    x8, scale = quantized(x)
    product: torch.Tensor = torch._scaled_mm(x8, w[0].T, scale, w[1].T, out_dtype=x.dtype, use_fast_accum=True)
    return product


class FeedForward:
    """A dense model's feed-forwards with both products in e4m3, in the place of `layers.feed_forward`."""

    def __init__(self, weights: Weights, config: Config) -> None:
        names = (f"layers.{layer}" for layer in range(config.layers))
        self._layers = [(quantized(weights[f"{name}.gate_up"]), quantized(weights[f"{name}.down"])) for name in names]

    def __call__(self, weights: Weights, config: Config, layer: int, x: torch.Tensor) -> torch.Tensor:
        """[..., tokens, hidden]; of `weights` nothing is read."""
        del weights
        gate_up, down = self._layers[layer]
        return linear(activated(config, linear(x.flatten(0, -2), gate_up)), down).view_as(x)
