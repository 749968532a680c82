"""A model grown wider and deeper that computes the same function: a trained model's answers at a larger model's cost."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from common.models.config import Config
from common.models.decoder import init, shapes
from common.models.layers import Weights


def grown_config(config: Config, *, width: int = 1, layers: int = 0, intermediate: int | None = None) -> Config:
    """`config` with `width` times the hidden elements and heads, `layers` more layers, and feed-forwards of `intermediate`.

    Raises ValueError where the function could not stay the same: a width that is no power of 4 would round the norms' weights.
    """
    if width < 1 or math.log(width, 4) % 1:
        raise ValueError(f"width {width}; expected 1, 4 or 16: its root scales the norms, and only powers of 2 are exact")
    if config.latent or config.experts or not config.learned_norms or config.activation == "squared_relu":
        raise ValueError("found latent attention, experts, plain norms or squared ReLU; expected a model like byte_lm")
    return replace(
        config,
        hidden=width * config.hidden,
        heads=width * config.heads,
        kv_heads=width * config.kv_heads,
        layers=config.layers + layers,
        intermediate=intermediate or width * config.intermediate,
        norm_eps=config.norm_eps / width,
    )


def grow(weights: Weights, config: Config, grown: Config, rand: Any) -> dict[str, torch.Tensor]:
    """The weights of `grown`, made by `grown_config`, that compute what `weights` of `config` do.

    The new elements of the residual stream stay zero: nothing that writes to it has weights there. New heads, new rows of feed-forwards
    and new layers are random, as `rand` draws them (a workload's, or a `torch.Generator`), and what they say is multiplied by zero.
    """
    out = init(grown, rand)
    for name, tensor in out.items():
        if name.endswith(("embedding", ".o", ".o_bias", ".down", ".down_bias")):
            tensor.zero_()
    for name, tensor in weights.items():
        _place(out[name], tensor, name)
    shrink = math.sqrt(config.hidden / grown.hidden)
    for name, tensor in out.items():
        if name.endswith("norm"):  # a mean over more elements is smaller by what the norm's weight makes up for
            tensor[: config.hidden] *= shrink
    return out


def shrink(weights: Weights, config: Config, grown: Config) -> dict[str, torch.Tensor]:
    """The weights of `config` within those of `grown`, as `grow` put them there: a function that is cheap to compute, and the same.

    Products are views of `weights`; norms are scaled back, which is exact.
    """
    larger = math.sqrt(grown.hidden / config.hidden)
    return {
        name: _within(weights[name], shape, name) * larger if name.endswith("norm") else _within(weights[name], shape, name)
        for name, shape in shapes(config).items()
    }


def _within(tensor: torch.Tensor, shape: tuple[int, ...], name: str) -> torch.Tensor:
    """The first elements of every dimension; of gates and ups those of each half."""
    if name.endswith((".gate_up", ".gate_up_bias")):
        return torch.cat([_within(half, (shape[0] // 2, *shape[1:]), "") for half in tensor.chunk(2)])
    return tensor[tuple(slice(extent) for extent in shape)]


def _place(into: torch.Tensor, tensor: torch.Tensor, name: str) -> None:
    """`tensor` in the first elements of every dimension of `into`; gates and ups each in their own half."""
    if name.endswith((".gate_up", ".gate_up_bias")):
        for half, part in zip(into.chunk(2), tensor.chunk(2), strict=True):
            _place(half, part, "")
        return
    into[tuple(slice(extent) for extent in tensor.shape)] = tensor
