"""A decoder-only transformer: weights from a config, and logits from tokens, over whatever keeps keys and values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn import functional

from common.models.config import Config
from common.models.layers import Float32, Weights, causal_attention, feed_forward, linear, rms_norm, rotate, rotation

FeedForward = Callable[[Weights, Config, int, torch.Tensor], torch.Tensor]
_STD = 0.02


class Attend(Protocol):
    """Attention of one layer, over the given keys and values and those of earlier calls if it keeps any.

    q [..., tokens, heads, dim], k and v [..., tokens, kv_heads, dim]; v is None where it is the first elements of k (`Latent`).
    """

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
        """[..., tokens, heads, value dim]."""


def shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Every weight's name and shape; a product's weight is [out, in]."""
    out: dict[str, tuple[int, ...]] = {"embedding": (config.vocabulary, config.hidden)}
    for layer in range(config.layers):
        parts = {**_attention_shapes(config), **_feed_forward_shapes(config)}
        out |= {f"layers.{layer}.{name}": shape for name, shape in parts.items()}
    if config.learned_norms:
        out["norm"] = (config.hidden,)
    if not config.tied:
        out["head"] = (config.vocabulary, config.hidden)
    return out


def _attention_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    hidden, width, kv_width = config.hidden, config.heads * config.head_dim, config.kv_heads * config.head_dim
    norms: dict[str, tuple[int, ...]] = {"attention_norm": (hidden,), "feed_forward_norm": (hidden,)} if config.learned_norms else {}
    if config.latent:
        latent = config.latent
        return norms | {
            "q_down": (latent.query_rank, hidden),
            "q_norm": (latent.query_rank,),
            "q_up": (config.heads * config.score_dim, latent.query_rank),
            "kv_down": (latent.rank + latent.rope_dim, hidden),
            "kv_norm": (latent.rank,),
            "k_up": (config.heads, latent.nope_dim, latent.rank),
            "v_up": (config.heads, latent.value_dim, latent.rank),
            "o": (hidden, config.heads * latent.value_dim),
        }
    products = {"q": (width, hidden), "k": (kv_width, hidden), "v": (kv_width, hidden), "o": (hidden, width)}
    biases = {f"{name}_bias": shape[:1] for name, shape in products.items()} if config.biases else {}
    return norms | products | biases | ({"sinks": (config.heads,)} if config.sinks else {})


def _feed_forward_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    inner = config.intermediate if config.activation == "squared_relu" else 2 * config.intermediate
    products: dict[str, tuple[int, ...]] = {"gate_up": (inner, config.hidden), "down": (config.hidden, config.intermediate)}
    if config.experts is None:
        return products
    count = config.experts.count
    experts: dict[str, tuple[int, ...]] = {f"experts.{name}": (count, *shape) for name, shape in products.items()}
    experts["router"] = (count, config.hidden)
    if config.biases:
        experts |= {"router_bias": (count,), "experts.gate_up_bias": (count, inner), "experts.down_bias": (count, config.hidden)}
    return experts


def init(config: Config, rand: Any) -> dict[str, torch.Tensor]:
    """Random weights, normal with a deviation of 0.02; norms are one. `rand` draws them: a workload's, or a `torch.Generator`."""
    if isinstance(rand, torch.Generator):
        generator = rand
        return {
            name: torch.empty(shape, dtype=config.dtype, device=generator.device).normal_(mean, std, generator=generator)
            for name, shape, mean, std in _moments(config)
        }
    return {name: rand.normal(*shape, dtype=config.dtype, mean=mean, std=std) for name, shape, mean, std in _moments(config)}


def _moments(config: Config) -> list[tuple[str, tuple[int, ...], float, float]]:
    """Name, shape, mean and deviation of every weight. What adds to the residual stream is smaller by the depth, as in GPT-2."""
    residual = _STD / math.sqrt(2 * config.layers)
    small = (".o", ".down")
    return [
        (name, shape, 1.0, 0.0) if name.endswith("norm") else (name, shape, 0.0, residual if name.endswith(small) else _STD)
        for name, shape in shapes(config).items()
    ]


def forward(weights: Weights, config: Config, tokens: torch.Tensor, attend: Attend | None = None) -> torch.Tensor:
    """Logits behind every token, [..., tokens, vocabulary], of sequences that start at position 0 and share nothing.

    The arithmetic is in the weights' dtype, norms, scores and softmax in at least float32: float32 weights give a reference.
    """
    positions = torch.arange(tokens.shape[-1], device=tokens.device)
    attend = attend or DenseAttention(weights, config)
    return logits(weights, config, hidden_states(weights, config, tokens, positions, attend))


def reference_logits(weights: Weights, config: Config, tokens: torch.Tensor, first: int) -> torch.Tensor:
    """What a referee holds a server to: float32 logits behind each of tokens[first:] of one request alone, whatever the weights' dtype."""
    wide = Float32(weights)
    positions = torch.arange(len(tokens), device=tokens.device)
    return logits(wide, config, hidden_states(wide, config, tokens, positions, DenseAttention(wide, config))[first:])


def hidden_states(
    weights: Weights, config: Config, tokens: torch.Tensor, positions: torch.Tensor, attend: Attend, feed: FeedForward = feed_forward
) -> torch.Tensor:
    """What the head reads behind every token, [..., tokens, hidden]: all layers, then the last norm."""
    x = functional.embedding(tokens, weights["embedding"])
    if config.embedding_norm:
        x = rms_norm(x, None, config.norm_eps)
    turn = rotation(config, positions, x.dtype)
    for layer in range(config.layers):
        name = f"layers.{layer}"
        x = x + attention(weights, config, layer, rms_norm(x, weights.get(f"{name}.attention_norm"), config.norm_eps), turn, attend)
        x = x + feed(weights, config, layer, rms_norm(x, weights.get(f"{name}.feed_forward_norm"), config.norm_eps))
    return rms_norm(x, weights.get("norm"), config.norm_eps)


def logits(weights: Weights, config: Config, x: torch.Tensor) -> torch.Tensor:
    """The head's scores of every token of the vocabulary, [..., vocabulary], for hidden states [..., hidden]."""
    scores = functional.linear(x, weights["embedding" if config.tied else "head"])
    return scores if config.logit_cap is None else torch.tanh(scores / config.logit_cap) * config.logit_cap


def attention(
    weights: Weights, config: Config, layer: int, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], attend: Attend
) -> torch.Tensor:
    """The first half of a layer, [..., tokens, hidden], without its norm and its addition."""
    name = f"layers.{layer}"
    if config.latent:
        return _latent_attention(weights, config, layer, x, turn, attend)
    q, k, v = (linear(weights, f"{name}.{part}", x).unflatten(-1, (-1, config.head_dim)) for part in "qkv")
    q, k = rotate(q, turn), rotate(k, turn)
    if config.query_key_norm:
        q, k = rms_norm(q, None, config.norm_eps), rms_norm(k, None, config.norm_eps)
    return linear(weights, f"{name}.o", attend(layer, q, k, v).flatten(-2))


def _latent_attention(
    weights: Weights, config: Config, layer: int, x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], attend: Attend
) -> torch.Tensor:
    """Latent attention with the up-projections of keys and values absorbed: all heads share one cached head of rank + rope_dim."""
    assert config.latent is not None
    name = f"layers.{layer}"
    latent = config.latent
    compressed = rms_norm(linear(weights, f"{name}.q_down", x), weights[f"{name}.q_norm"], config.norm_eps)
    q = linear(weights, f"{name}.q_up", compressed).unflatten(-1, (config.heads, config.score_dim))
    nope, rope = q.split((latent.nope_dim, latent.rope_dim), dim=-1)
    kv, k_rope = linear(weights, f"{name}.kv_down", x).split((latent.rank, latent.rope_dim), dim=-1)
    kv = rms_norm(kv, weights[f"{name}.kv_norm"], config.norm_eps)
    k = torch.cat((kv.unsqueeze(-2), rotate(k_rope.unsqueeze(-2), turn)), dim=-1)
    q = torch.cat((torch.einsum("...hn,hnr->...hr", nope, weights[f"{name}.k_up"]), rotate(rope, turn)), dim=-1)
    answer = attend(layer, q, k, None)
    return linear(weights, f"{name}.o", torch.einsum("...hr,hvr->...hv", answer, weights[f"{name}.v_up"]).flatten(-2))


class DenseAttention:
    """Attention over the tokens of the call alone, in plain arithmetic."""

    def __init__(self, weights: Weights, config: Config) -> None:
        self._weights = weights
        self._config = config

    def __call__(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
        """[..., tokens, heads, value dim]."""
        v = values_of(self._config, k) if v is None else v
        sinks = self._weights.get(f"layers.{layer}.sinks")
        return causal_attention(q, k, v, self._config.score_dim**-0.5, self._config.window_of(layer), sinks)


def fused_attention(layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None) -> torch.Tensor:
    """Attention over the tokens of the call alone in torch's kernel, for models without windows, sinks and latents."""
    del layer
    assert v is not None
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(-3, -2)


def values_of(config: Config, k: torch.Tensor) -> torch.Tensor:
    """The values within latent keys: their first `rank` elements."""
    assert config.latent is not None
    return k[..., : config.latent.rank]
