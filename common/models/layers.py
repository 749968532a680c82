"""The parts of a transformer's layer, on tensors whose last dimension is the width. Leading dimensions are free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch.nn import functional

from common.models.config import Config, Rotary, Yarn

Weights = Mapping[str, torch.Tensor]

QUERIES_AT_ONCE = 1024  # bounds the scores that lie in memory: heads x 1024 x context elements


class Float32(Mapping[str, torch.Tensor]):
    """Weights in float32, each upcast when it is asked for: at most one product's are in memory twice."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._weights[name].float()

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


def wide(x: torch.Tensor) -> torch.Tensor:
    """`x` in at least float32."""
    return x if x.dtype == torch.float64 else x.float()


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    """`x` over its root mean square in the last dimension, computed in at least float32, times `weight`."""
    return functional.rms_norm(x, x.shape[-1:], None if weight is None else weight.to(x.dtype), eps)


def linear(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    """`x` times the transpose of weight `name`, plus its bias where there is one."""
    return functional.linear(x, weights[name], weights.get(f"{name}_bias"))


def frequencies(rotary: Rotary, dim: int, device: torch.device) -> tuple[torch.Tensor, float]:
    """Radians a position, [dim / 2] in float32, and the factor on cosine and sine that YaRN adds."""
    pairs = torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim
    plain = rotary.theta**-pairs
    if rotary.yarn is None:
        return plain, 1.0
    low, high = (_pair_that_turns(rotary, rotary.yarn, turns, dim) for turns in (rotary.yarn.beta_fast, rotary.yarn.beta_slow))
    low, high = max(low, 0.0), min(high, dim - 1.0)
    ramp = ((torch.arange(dim // 2, dtype=torch.float32, device=device) - low) / (high - low)).clamp(0, 1)
    return plain / rotary.yarn.factor * ramp + plain * (1 - ramp), 0.1 * math.log(rotary.yarn.factor) + 1.0


def _pair_that_turns(rotary: Rotary, yarn: Yarn, turns: float, dim: int) -> float:
    """Which pair of elements turns `turns` times over the trained positions, as a fraction of pairs."""
    return dim * math.log(yarn.trained_positions / (turns * 2 * math.pi)) / (2 * math.log(rotary.theta))


def rotation(config: Config, positions: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of every position, [..., 1, rotated_dim / 2]: they broadcast over heads."""
    radians, factor = frequencies(config.rotary, config.rotated_dim, positions.device)
    angles = (positions.to(radians.dtype)[..., None] * radians).unsqueeze(-2)
    sine = -angles.sin() if config.rotary.clockwise else angles.sin()
    return (angles.cos() * factor).to(dtype), (sine * factor).to(dtype)


def rotate(x: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """`x`, [..., heads, dim], with element i and i + dim / 2 of each head turned as a pair."""
    cosine, sine = rotation
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def activated(config: Config, gate_up: torch.Tensor) -> torch.Tensor:
    """The activation between the two products of a feed-forward; the gate is the first half of the last dimension."""
    if config.activation == "squared_relu":
        return functional.relu(gate_up).square()
    gate, up = gate_up.chunk(2, dim=-1)
    if config.activation == "swiglu":
        return functional.silu(gate) * up
    gate, up = gate.clamp(max=7.0), up.clamp(-7.0, 7.0)
    return gate * torch.sigmoid(1.702 * gate) * (up + 1)


def feed_forward(weights: Weights, config: Config, layer: int, x: torch.Tensor) -> torch.Tensor:
    """The second half of a layer: two products with an activation between, or a mixture of such experts."""
    name = f"layers.{layer}"
    if config.experts is None:
        return linear(weights, f"{name}.down", activated(config, linear(weights, f"{name}.gate_up", x)))
    tokens = x.reshape(-1, config.hidden)
    return run_experts(weights, config, layer, tokens, *route(weights, config, layer, tokens)).view_as(x)


def route(weights: Weights, config: Config, layer: int, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The experts of every token and their shares of its answer, [tokens, top] each. Shares sum to 1 over the chosen experts."""
    assert config.experts is not None
    scores, chosen = linear(weights, f"layers.{layer}.router", tokens).topk(config.experts.top, dim=-1)
    return chosen, wide(scores).softmax(-1).to(tokens.dtype)


def expert_capacity(config: Config, tokens: int) -> int:
    """How many of a call's `tokens` one expert takes."""
    assert config.experts is not None
    if config.experts.capacity is None:
        return tokens
    return math.ceil(config.experts.capacity * tokens * config.experts.top / config.experts.count)


def run_experts(
    weights: Weights, config: Config, layer: int, tokens: torch.Tensor, chosen: torch.Tensor, shares: torch.Tensor
) -> torch.Tensor:
    """The experts one after another, each on its tokens: [tokens, hidden]. Beyond its capacity an expert drops the later tokens."""
    assert config.experts is not None
    name = f"layers.{layer}"
    gate_up, down = weights[f"{name}.experts.gate_up"], weights[f"{name}.experts.down"]
    gate_up_bias, down_bias = weights.get(f"{name}.experts.gate_up_bias"), weights.get(f"{name}.experts.down_bias")
    order = chosen.flatten().sort(stable=True).indices
    counts = chosen.flatten().bincount(minlength=config.experts.count).tolist()
    most = expert_capacity(config, len(tokens))
    out = torch.zeros_like(tokens)
    for expert, slots in enumerate(order.split(counts)):
        kept = slots[:most]
        if not len(kept):
            continue
        rows = kept // config.experts.top
        inner = functional.linear(tokens[rows], gate_up[expert], None if gate_up_bias is None else gate_up_bias[expert])
        answer = functional.linear(activated(config, inner), down[expert], None if down_bias is None else down_bias[expert])
        out.index_add_(0, rows, answer * shares.flatten()[kept, None])  # a token is in an expert once: no two additions meet
    return out


def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, window: int | None = None, sinks: torch.Tensor | None = None
) -> torch.Tensor:
    """Attention in plain arithmetic, scores in at least float32: the definition that others are held to.

    q [..., queries, heads, dim], k and v [..., keys, kv_heads, dim]; the last query stands at the last key. A sink is a score
    a head that takes its part of the sum and adds nothing to the answer. Returns [..., queries, heads, v's dim].
    """
    queries, keys = q.shape[-3], k.shape[-3]
    groups = q.shape[-2] // k.shape[-2]
    k, v = (x.repeat_interleave(groups, dim=-2).transpose(-3, -2) for x in (k, v))
    parts = []
    for start in range(0, queries, QUERIES_AT_ONCE):
        rows = q[..., start : start + QUERIES_AT_ONCE, :, :].transpose(-3, -2)
        at = torch.arange(start, start + rows.shape[-2], device=q.device) + keys - queries
        scores = (wide(rows) @ wide(k).mT * scale).masked_fill(~visible(at, keys, window), -math.inf)
        parts.append((_shares(scores, sinks) @ wide(v)).to(v.dtype).transpose(-3, -2))
    return torch.cat(parts, dim=-3)


def visible(at: torch.Tensor, keys: int, window: int | None) -> torch.Tensor:
    """Which of `keys` a query at position `at` sees: [..., keys] for positions [...]."""
    behind = at[..., None] - torch.arange(keys, device=at.device)
    return (behind >= 0) if window is None else (behind >= 0) & (behind < window)


def _shares(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    if sinks is None:
        return scores.softmax(-1)
    column = sinks.to(scores.dtype)[:, None, None].expand(*scores.shape[:-1], 1)
    return torch.cat((scores, column), dim=-1).softmax(-1)[..., :-1]
