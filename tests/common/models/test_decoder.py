"""The decoder's own mechanisms, where no other implementation says what is right, and the presets' real shapes."""

import math
from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.config import Experts
from common.models.decoder import forward, fused_attention, init, reference_logits, shapes
from common.models.grow import grow, grown_config, shrink
from common.models.layers import causal_attention, expert_capacity, route, run_experts

TINY = presets.tiny()


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def weights_of(config):
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in init(config, generator()).items()}


def tokens_of(config, *shape):
    return torch.randint(config.vocabulary, shape, generator=generator(2))


def parameters(config):
    return sum(math.prod(shape) for shape in shapes(config).values())


@pytest.mark.parametrize(
    ("config", "billions"),
    [
        (presets.byte_lm(), 0.0030),
        (presets.byte_lm_draft(), 0.00033),
        (presets.nanochat(), 0.561),  # of the d20 as published
        (presets.gpt_oss_20b(), 20.9),
        (presets.gpt_oss_120b(), 116.8),
    ],
)
def test_presets_have_as_many_parameters_as_the_models(config, billions):
    assert parameters(config) / 1e9 == pytest.approx(billions, rel=0.01)


def test_init_is_of_the_stated_shapes_and_dtype():
    weights = init(presets.byte_lm_draft(), generator())
    assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == shapes(presets.byte_lm_draft())
    assert {tensor.dtype for tensor in weights.values()} == {torch.bfloat16}
    assert weights["norm"].eq(1).all()
    assert weights["layers.0.q"].float().std() == pytest.approx(0.02, rel=0.05)


def test_a_prefix_does_not_see_what_follows():
    weights, tokens = weights_of(TINY), tokens_of(TINY, 20)
    torch.testing.assert_close(forward(weights, TINY, tokens)[:13], forward(weights, TINY, tokens[:13]))


def test_sequences_of_a_batch_share_nothing():
    weights, tokens = weights_of(TINY), tokens_of(TINY, 3, 20)
    alone = torch.stack([forward(weights, TINY, row) for row in tokens])
    torch.testing.assert_close(forward(weights, TINY, tokens), alone, rtol=1e-4, atol=1e-5)


def test_double_precision_is_kept():
    weights = {name: tensor.double() for name, tensor in weights_of(TINY).items()}
    found = forward(weights, TINY, tokens_of(TINY, 20))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), forward(weights_of(TINY), TINY, tokens_of(TINY, 20)), rtol=1e-3, atol=1e-4)


def test_the_reference_is_the_forward_of_float32_weights():
    config = replace(TINY, dtype=torch.bfloat16)
    weights, tokens = {name: tensor.bfloat16() for name, tensor in weights_of(TINY).items()}, tokens_of(TINY, 20)
    found = reference_logits(weights, config, tokens, 17)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, forward({name: tensor.float() for name, tensor in weights.items()}, TINY, tokens)[17:])


def test_a_window_hides_all_before_it():
    q, k, v = (torch.randn(12, 2, 8, generator=generator(seed)) for seed in (1, 2, 3))
    windowed = causal_attention(q, k, v, 0.3, window=4)
    torch.testing.assert_close(windowed[11:], causal_attention(q[11:], k[8:], v[8:], 0.3))


def test_scores_are_made_in_parts(monkeypatch):
    q, k, v = (torch.randn(2, 9, 4, 8, generator=generator(seed)) for seed in (1, 2, 3))
    sinks = torch.randn(4, generator=generator(4))
    whole = causal_attention(q, k, v, 0.3, 5, sinks)
    monkeypatch.setattr("common.models.layers.QUERIES_AT_ONCE", 4)
    torch.testing.assert_close(causal_attention(q, k, v, 0.3, 5, sinks), whole)


def test_the_fused_kernel_is_the_definition():
    config = replace(TINY, window=None, sinks=False)
    weights, tokens = weights_of(config), tokens_of(config, 2, 20)
    torch.testing.assert_close(forward(weights, config, tokens, fused_attention), forward(weights, config, tokens), rtol=1e-4, atol=1e-4)


# --- experts


@pytest.fixture
def experts():
    config = replace(TINY, experts=Experts(4, top=2))
    return config, weights_of(config), torch.randn(11, config.hidden, generator=generator(5))


def test_experts_are_a_weighted_sum(experts):
    config, weights, tokens = experts
    chosen, shares = route(weights, config, 0, tokens)
    torch.testing.assert_close(shares.sum(-1), torch.ones(11))
    found = run_experts(weights, config, 0, tokens, chosen, shares)
    single = replace(config, experts=Experts(4, top=1))
    parts = [run_experts(weights, single, 0, tokens, chosen[:, i : i + 1], shares[:, i : i + 1]) for i in range(2)]
    torch.testing.assert_close(found, parts[0] + parts[1])


def test_an_expert_drops_the_later_tokens_beyond_its_capacity(experts):
    config, weights, tokens = experts
    capped = replace(config, experts=Experts(4, top=2, capacity=0.6))
    assert expert_capacity(capped, 11) == math.ceil(0.6 * 11 * 2 / 4) == 4
    chosen, shares = torch.zeros(11, 2, dtype=torch.int64), torch.ones(11, 2)
    chosen[:, 1] = 1
    found = run_experts(weights, capped, 0, tokens, chosen, shares)
    torch.testing.assert_close(found[:4], run_experts(weights, config, 0, tokens, chosen, shares)[:4])
    assert not found[4:].any()
    assert found[:4].any(-1).all()


# --- growing


@pytest.mark.parametrize("more", [{"width": 4}, {"layers": 3}, {"intermediate": 100}, {"width": 4, "layers": 1, "intermediate": 300}])
@pytest.mark.parametrize(
    "plain", [replace(TINY, window=None), replace(presets.byte_lm_draft(), dtype=torch.float32)], ids=["tiny", "byte_lm_draft"]
)
def test_a_grown_model_says_the_same(plain, more):
    if "intermediate" in more:
        more = more | {"intermediate": plain.intermediate + more["intermediate"]}
    weights, tokens = weights_of(plain), tokens_of(plain, 2, 20)
    config = grown_config(plain, **more)
    grown = grow(weights, plain, config, generator(7))
    assert {name: tuple(tensor.shape) for name, tensor in grown.items()} == shapes(config)
    expected = forward(weights, plain, tokens)
    torch.testing.assert_close(forward(grown, config, tokens), expected, rtol=1e-4, atol=1e-4 * expected.std().item())


def test_bfloat16_weights_grow_without_rounding():
    plain = presets.byte_lm_draft()
    weights = init(plain, generator())
    grown = grow(weights, plain, grown_config(plain, width=4), generator(7))
    assert torch.equal(grown["norm"][:128] * 2, weights["norm"])
    assert torch.equal(grown["layers.0.q"][:128, :128], weights["layers.0.q"])


@pytest.mark.parametrize("more", [{"width": 4}, {"layers": 3}, {"width": 16, "layers": 1, "intermediate": 500}])
def test_a_grown_model_shrinks_to_what_it_was(more):
    plain = presets.byte_lm_draft()
    weights = init(plain, generator())
    config = grown_config(plain, **more)
    shrunk = shrink(grow(weights, plain, config, generator(7)), plain, config)
    assert shrunk.keys() == weights.keys()
    assert all(torch.equal(shrunk[name], tensor) for name, tensor in weights.items())


def test_a_width_that_would_round_is_refused():
    with pytest.raises(ValueError, match="width 2; expected 1, 4 or 16"):
        grown_config(TINY, width=2)
