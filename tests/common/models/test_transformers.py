"""The decoder against transformers' models on the same random weights: logits, and greedy generation."""

from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.config import Config, Experts, Latent, Rotary, Yarn
from common.models.decoder import forward, init
from common.models.in_transformers import common_fields, dense_names, plain_names
from common.models.layers import Weights

transformers = pytest.importorskip("transformers")

TOKENS = 23  # more than the window of 8
GREEDY = 12

LLAMA = Config(97, 32, 2, 4, 2, 8, 48, dtype=torch.float32)
GPT_OSS = replace(
    presets.gpt_oss_20b(layers=2),
    vocabulary=97,
    hidden=32,
    heads=4,
    kv_heads=2,
    head_dim=16,
    intermediate=24,
    window=8,
    experts=Experts(6, top=2),
    rotary=Rotary(theta=150_000.0, yarn=Yarn(factor=32.0, trained_positions=64)),
    dtype=torch.float32,
)
NANOCHAT = replace(
    presets.nanochat(), vocabulary=97, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, intermediate=64, dtype=torch.float32
)
DEEPSEEK = replace(
    presets.deepseek_mla(layers=2),
    vocabulary=97,
    hidden=32,
    heads=4,
    kv_heads=4,
    intermediate=48,
    latent=Latent(query_rank=24, rank=16, nope_dim=8, rope_dim=4, value_dim=6),
    dtype=torch.float32,
)


def llama(weights: Weights, config: Config):
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            **common_fields(config),
            attn_implementation="eager",
            head_dim=config.head_dim,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        )
    )
    return theirs, plain_names(weights, config) | dense_names(weights, config)


def gpt_oss(weights: Weights, config: Config):
    yarn = {"rope_type": "yarn", "rope_theta": 150_000.0, "factor": 32.0, "original_max_position_embeddings": 64}
    theirs = transformers.GptOssForCausalLM(
        transformers.GptOssConfig(
            **common_fields(config),
            attn_implementation="eager",
            head_dim=config.head_dim,
            sliding_window=config.window,
            num_local_experts=config.experts.count,
            num_experts_per_tok=config.experts.top,
            rope_parameters=yarn | {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": False},
        )
    )
    names = plain_names(weights, config)
    for layer in range(config.layers):
        ours, theirs_name = f"layers.{layer}", f"model.layers.{layer}"
        names[f"{theirs_name}.self_attn.sinks"] = weights[f"{ours}.sinks"]
        names[f"{theirs_name}.mlp.router.weight"] = weights[f"{ours}.router"]
        names[f"{theirs_name}.mlp.router.bias"] = weights[f"{ours}.router_bias"]
        experts = f"{theirs_name}.mlp.experts"
        names[f"{experts}.gate_up_proj"] = interleaved(weights[f"{ours}.experts.gate_up"]).mT
        names[f"{experts}.gate_up_proj_bias"] = interleaved(weights[f"{ours}.experts.gate_up_bias"])
        names[f"{experts}.down_proj"] = weights[f"{ours}.experts.down"].mT
        names[f"{experts}.down_proj_bias"] = weights[f"{ours}.experts.down_bias"]
    return theirs, names


def interleaved(gate_up: torch.Tensor) -> torch.Tensor:
    """Rows g0, u0, g1, u1, ... as gpt-oss keeps them, of rows g0, g1, ..., u0, u1, ..."""
    return torch.stack(gate_up.chunk(2, dim=1), dim=2).flatten(1, 2)


def nanochat(weights: Weights, config: Config):
    theirs = transformers.NanoChatForCausalLM(
        transformers.NanoChatConfig(
            **common_fields(config), attn_implementation="eager", rope_parameters={"rope_type": "default", "rope_theta": 1e4}
        )
    )
    names = plain_names(weights, config)
    for layer in range(config.layers):
        names[f"model.layers.{layer}.mlp.fc1.weight"] = weights[f"layers.{layer}.gate_up"]
        names[f"model.layers.{layer}.mlp.fc2.weight"] = weights[f"layers.{layer}.down"]
    return theirs, names


def deepseek(weights: Weights, config: Config):
    latent = config.latent
    theirs = transformers.DeepseekV3ForCausalLM(
        transformers.DeepseekV3Config(
            **common_fields(config),
            attn_implementation="eager",
            first_k_dense_replace=config.layers,
            kv_lora_rank=latent.rank,
            q_lora_rank=latent.query_rank,
            qk_rope_head_dim=latent.rope_dim,
            qk_nope_head_dim=latent.nope_dim,
            v_head_dim=latent.value_dim,
            rope_interleave=False,
            rope_parameters={"rope_type": "default", "rope_theta": 1e4},
            num_mtp_layers=0,
        )
    )
    names = plain_names(weights, config) | dense_names(weights, config)
    for layer in range(config.layers):
        ours, theirs_name = f"layers.{layer}", f"model.layers.{layer}.self_attn"
        pairs = {
            "q_down": "q_a_proj",
            "q_norm": "q_a_layernorm",
            "q_up": "q_b_proj",
            "kv_down": "kv_a_proj_with_mqa",
            "kv_norm": "kv_a_layernorm",
        }
        names |= {f"{theirs_name}.{end}.weight": weights[f"{ours}.{start}"] for start, end in pairs.items()}
        up = torch.cat((weights[f"{ours}.k_up"], weights[f"{ours}.v_up"]), dim=1)
        names[f"{theirs_name}.kv_b_proj.weight"] = up.flatten(0, 1)
    return theirs, names


CASES = {
    "llama": (llama, LLAMA),
    "llama tied": (llama, replace(LLAMA, tied=True)),
    "gpt-oss": (gpt_oss, GPT_OSS),
    "nanochat": (nanochat, NANOCHAT),
    "deepseek": (deepseek, DEEPSEEK),
}


@pytest.fixture(params=list(CASES))
def case(request):
    convert, config = CASES[request.param]
    # Larger than those of `init`: at a deviation of 0.02 a wrong mask would hardly move the logits.
    weights = {
        name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in init(config, torch.Generator().manual_seed(3)).items()
    }
    theirs, names = convert(weights, config)
    theirs.load_state_dict(names, strict=True)
    return theirs.eval(), weights, config


def test_logits_are_those_of_transformers(case):
    theirs, weights, config = case
    tokens = torch.randint(config.vocabulary, (2, TOKENS), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        expected = theirs(tokens).logits
        ours = forward(weights, config, tokens)
    assert expected.std() > 0.1
    torch.testing.assert_close(ours, expected, rtol=2e-4, atol=2e-4)


def test_greedy_generation_is_that_of_transformers(case):
    theirs, weights, config = case
    prompt = torch.randint(config.vocabulary, (1, TOKENS), generator=torch.Generator().manual_seed(7))
    expected = theirs.generate(prompt, max_new_tokens=GREEDY, min_new_tokens=GREEDY, do_sample=False)
    ours = prompt
    for _ in range(GREEDY):
        ours = torch.cat((ours, forward(weights, config, ours)[:, -1:].argmax(-1)), dim=-1)
    assert ours.tolist() == expected.tolist()
