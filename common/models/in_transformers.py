"""The names that transformers has for our configurations and weights; transformers itself is not imported."""

from __future__ import annotations

from typing import Any

import torch

from common.models.config import Config
from common.models.layers import Weights


def common_fields(config: Config) -> dict[str, Any]:
    """What a configuration of transformers is given for `config`, by the names that all of its models share; no token ends an answer."""
    return {
        "vocab_size": config.vocabulary,
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": config.tied,
        **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")),
    }


def plain_names(weights: Weights, config: Config) -> Weights:
    """The weights that all of transformers' models name alike: embedding, head, norms, and attention without latents."""
    out = {"model.embed_tokens.weight": weights["embedding"], "lm_head.weight": weights["embedding" if config.tied else "head"]}
    if config.learned_norms:
        out["model.norm.weight"] = weights["norm"]
    for layer in range(config.layers):
        ours, theirs = f"layers.{layer}", f"model.layers.{layer}"
        if config.learned_norms:
            out[f"{theirs}.input_layernorm.weight"] = weights[f"{ours}.attention_norm"]
            out[f"{theirs}.post_attention_layernorm.weight"] = weights[f"{ours}.feed_forward_norm"]
        for part in "qkvo":
            for ours_end, theirs_end in (("", "weight"), ("_bias", "bias")):
                if f"{ours}.{part}{ours_end}" in weights:
                    out[f"{theirs}.self_attn.{part}_proj.{theirs_end}"] = weights[f"{ours}.{part}{ours_end}"]
    return out


def dense_names(weights: Weights, config: Config) -> Weights:
    """The weights of gated feed-forward layers without experts, by the names of Llama and of those like it."""
    out: dict[str, torch.Tensor] = {}
    for layer in range(config.layers):
        gate, up = weights[f"layers.{layer}.gate_up"].chunk(2)
        theirs = f"model.layers.{layer}.mlp"
        out |= {
            f"{theirs}.gate_proj.weight": gate,
            f"{theirs}.up_proj.weight": up,
            f"{theirs}.down_proj.weight": weights[f"layers.{layer}.down"],
        }
    return out
