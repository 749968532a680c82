"""What distinguishes one decoder-only transformer from another, and the ones that pairs run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch


@dataclass(frozen=True)
class Yarn:
    """Rotary frequencies stretched for contexts beyond the trained ones (arXiv:2309.00071)."""

    factor: float
    trained_positions: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0


@dataclass(frozen=True)
class Rotary:
    """Rotary position embedding. `clockwise` turns by the negative angle, as nanochat does."""

    theta: float = 10_000.0
    yarn: Yarn | None = None
    clockwise: bool = False


@dataclass(frozen=True)
class Experts:
    """A mixture of experts. An expert takes at most `capacity` times its even share of a call's tokens, or all of them."""

    count: int
    top: int
    capacity: float | None = None


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (arXiv:2405.04434): ranks of the compressed queries, keys and values, and widths a head."""

    query_rank: int
    rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int


@dataclass(frozen=True)
class Config:
    """A decoder-only transformer. Widths are in elements; every `window_every`-th layer, from the first, sees `window` tokens."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    activation: Literal["swiglu", "clamped_swiglu", "squared_relu"] = "swiglu"
    rotary: Rotary = Rotary()
    window: int | None = None
    window_every: int = 1
    sinks: bool = False
    biases: bool = False
    experts: Experts | None = None
    latent: Latent | None = None
    tied: bool = False
    learned_norms: bool = True
    query_key_norm: bool = False  # behind the rotation, without weights
    embedding_norm: bool = False
    logit_cap: float | None = None
    norm_eps: float = 1e-5
    dtype: torch.dtype = torch.bfloat16

    def window_of(self, layer: int) -> int | None:
        """How many tokens `layer` sees, its own included; None for all."""
        return self.window if layer % self.window_every == 0 else None

    @property
    def cached_heads(self) -> int:
        """Key heads of a cache: one for latent attention, whose heads share what is cached."""
        return 1 if self.latent else self.kv_heads

    @property
    def cached_dim(self) -> int:
        """Elements of a cached key a head: for latent attention the latent, then the rotated part that all heads share."""
        return self.latent.rank + self.latent.rope_dim if self.latent else self.head_dim

    @property
    def score_dim(self) -> int:
        """Elements that a score sums over before anything is absorbed; attention scales by its inverse square root."""
        return self.latent.nope_dim + self.latent.rope_dim if self.latent else self.head_dim

    @property
    def rotated_dim(self) -> int:
        """Elements of a head that are rotated."""
        return self.latent.rope_dim if self.latent else self.head_dim


def tiny() -> Config:
    """For tests on a CPU: every mechanism of gpt-oss but the experts, in a few thousand weights."""
    return Config(
        vocabulary=97,
        hidden=32,
        layers=2,
        heads=4,
        kv_heads=2,
        head_dim=16,
        intermediate=48,
        window=8,
        window_every=2,
        sinks=True,
        biases=True,
        dtype=torch.float32,
    )


def byte_lm() -> Config:
    """The trained byte-level model of the tree: 3.0 million weights, a token a byte. Its weights are `rand.asset("byte_lm")`."""
    return Config(vocabulary=256, hidden=256, layers=4, heads=4, kv_heads=2, head_dim=64, intermediate=704, tied=True)


def byte_lm_draft() -> Config:
    """A tenth of `byte_lm`, to draft for it: 0.3 million weights. Its weights are `rand.asset("byte_lm_draft")`."""
    return Config(vocabulary=256, hidden=128, layers=2, heads=2, kv_heads=1, head_dim=64, intermediate=256, tied=True)


def nanochat(layers: int = 20) -> Config:
    """Karpathy's nanochat at depth `layers`: 64 elements of width a layer, heads of 128, a vocabulary of 65536."""
    hidden = 64 * layers
    return Config(
        vocabulary=65536,
        hidden=hidden,
        layers=layers,
        heads=hidden // 128,
        kv_heads=hidden // 128,
        head_dim=128,
        intermediate=4 * hidden,
        activation="squared_relu",
        rotary=Rotary(clockwise=True),
        learned_norms=False,
        query_key_norm=True,
        embedding_norm=True,
        logit_cap=15.0,
        norm_eps=1e-6,
    )


def gpt_oss_20b(layers: int = 24) -> Config:
    """gpt-oss-20b, reduced in depth only: 32 experts, of which a token takes 4, and a window of 128 every other layer."""
    return _gpt_oss(layers, experts=32)


def gpt_oss_120b(layers: int = 36) -> Config:
    """gpt-oss-120b, reduced in depth only: the layer of gpt-oss-20b with 128 experts."""
    return _gpt_oss(layers, experts=128)


def _gpt_oss(layers: int, experts: int) -> Config:
    return Config(
        vocabulary=201_088,
        hidden=2880,
        layers=layers,
        heads=64,
        kv_heads=8,
        head_dim=64,
        intermediate=2880,
        activation="clamped_swiglu",
        rotary=Rotary(theta=150_000.0, yarn=Yarn(factor=32.0, trained_positions=4096)),
        window=128,
        window_every=2,
        sinks=True,
        biases=True,
        experts=Experts(experts, top=4),
    )


def deepseek_mla(layers: int = 1) -> Config:
    """DeepSeek-V3's latent attention with its dense feed-forward (its first three layers); its experts are not modelled."""
    return Config(
        vocabulary=129_280,
        hidden=7168,
        layers=layers,
        heads=128,
        kv_heads=128,
        head_dim=192,
        intermediate=18_432,
        latent=Latent(query_rank=1536, rank=512, nope_dim=128, rope_dim=64, value_dim=128),
        norm_eps=1e-6,
    )
