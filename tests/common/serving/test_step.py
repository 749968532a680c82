"""A step over paged keys and values against the forward of each sequence alone."""

import functools
import random
from dataclasses import replace

import pytest
import torch
from torch.nn.attention import SDPBackend, _cur_sdpa_kernel_backends

from common.models import config as presets
from common.models.config import Experts, Latent
from common.models.decoder import forward, init
from common.serving.decode_step import DecodeStep
from common.serving.dense_cache import DenseCache, dense_step
from common.serving.kv_blocks import KvBlocks, OutOfBlocks
from common.serving.step import step, step_over_all

TINY = presets.tiny()
CONFIGS = {
    "windows and sinks": TINY,
    "byte_lm": replace(presets.byte_lm(), hidden=64, layers=2, head_dim=16, intermediate=48, dtype=torch.float32),
    "experts": replace(TINY, activation="clamped_swiglu", experts=Experts(6, top=2)),
    "nanochat": replace(presets.nanochat(), vocabulary=97, hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, dtype=torch.float32),
    "latent": replace(
        presets.deepseek_mla(2),
        vocabulary=97,
        hidden=32,
        heads=4,
        intermediate=48,
        latent=Latent(query_rank=24, rank=16, nope_dim=8, rope_dim=4, value_dim=6),
        dtype=torch.float32,
    ),
}


def weights_of(config, seed=3):
    """Larger than those of `init`: at a deviation of 0.02 a wrong context would hardly move the logits."""
    generator = torch.Generator().manual_seed(seed)
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in init(config, generator).items()}


WEIGHTS = {name: weights_of(config) for name, config in CONFIGS.items()}


def tokens_of(config, *shape, seed=5):
    return torch.randint(config.vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4 * expected.std().item() + 1e-5)


@functools.cache
def alone(name):
    """Four sequences of 60 tokens, and the logits behind each of their tokens."""
    text = tokens_of(CONFIGS[name], 4, 60)
    return text, forward(WEIGHTS[name], CONFIGS[name], text)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_the_forward_of_every_sequence_alone(name, seed):
    """Some of four sequences get 1 to 11 tokens in each of five steps."""
    rng = random.Random(seed)
    steps = [{i: rng.choice((1, 1, rng.randint(1, 11))) for i in rng.sample(range(4), rng.randint(1, 4))} for _ in range(5)]
    block_tokens = rng.choice((1, 4, 16))
    config, weights = CONFIGS[name], WEIGHTS[name]
    blocks = KvBlocks(config, blocks=240, block_tokens=block_tokens, device="cpu")
    for left in (blocks.keys, blocks.values):  # by others: what lies behind a sequence's end must not matter
        if left is not None:
            left.fill_(3.0)
    text, expected = alone(name)
    done = dict.fromkeys(range(4), 0)
    for chunks in steps:
        ids = list(chunks)
        found = step(weights, config, blocks, ids, [text[i, done[i] : done[i] + chunks[i]] for i in ids])
        for row, i in zip(found, ids, strict=True):
            done[i] += chunks[i]
            close(row, expected[i, done[i] - 1])


def test_no_step_may_wait_for_a_plan_of_its_shape(monkeypatch):
    """cuDNN's kernels are planned once a shape, which takes longer than many steps. What the caller allows is as before afterwards."""
    before, allowed, attend = _cur_sdpa_kernel_backends(), [], torch.nn.functional.scaled_dot_product_attention

    def watched(*arguments, **named):
        allowed.append(set(_cur_sdpa_kernel_backends()))
        return attend(*arguments, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    blocks = KvBlocks(TINY, blocks=20, block_tokens=4, device="cpu")
    step(WEIGHTS["windows and sinks"], TINY, blocks, ["a"], [tokens_of(TINY, 5)])
    assert allowed
    assert all(backends == {SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH} for backends in allowed)
    assert _cur_sdpa_kernel_backends() == before


@pytest.mark.parametrize("name", CONFIGS)
def test_a_dense_step_is_the_forward(name):
    config, weights = CONFIGS[name], WEIGHTS[name]
    cache = DenseCache(config, sequences=2, capacity=21, device="cpu")
    text = tokens_of(config, 2, 21)
    found = torch.cat([dense_step(weights, config, cache, part) for part in text.split((9, 1, 1, 10), dim=1)], dim=1)
    close(found, forward(weights, config, text))
    with pytest.raises(ValueError, match="found 22 tokens; expected at most 21"):
        dense_step(weights, config, cache, text[:, :1])


def test_a_fork_goes_its_own_way():
    config, weights = TINY, WEIGHTS["windows and sinks"]
    blocks = KvBlocks(config, blocks=20, block_tokens=4, device="cpu")
    prefix, ends = tokens_of(config, 10), tokens_of(config, 2, 5, seed=6)
    step(weights, config, blocks, ["a"], [prefix])
    blocks.fork("a", "b")
    found = step(weights, config, blocks, ["a", "b"], list(ends))
    close(found, forward(weights, config, torch.cat((prefix.expand(2, -1), ends), dim=1))[:, -1])


def test_drafts_that_fell_are_forgotten():
    config, weights = TINY, WEIGHTS["windows and sinks"]
    blocks = KvBlocks(config, blocks=20, block_tokens=4, device="cpu")
    text, wrong = tokens_of(config, 9), tokens_of(config, 6, seed=6)
    step(weights, config, blocks, ["a"], [text[:6]])
    step(weights, config, blocks, ["a"], [wrong])
    blocks.truncate("a", 6)
    close(step(weights, config, blocks, ["a"], [text[6:]])[0], forward(weights, config, text)[-1])


def test_a_pool_that_is_too_small_is_out_of_blocks():
    blocks = KvBlocks(TINY, blocks=2, block_tokens=4, device="cpu")
    with pytest.raises(OutOfBlocks, match="found 2 free blocks; expected 3"):
        step(WEIGHTS["windows and sinks"], TINY, blocks, ["a"], [tokens_of(TINY, 9)])


def test_what_is_cached_in_another_dtype_is_read_in_it():
    config = replace(CONFIGS["byte_lm"], dtype=torch.bfloat16)
    weights = {name: tensor.bfloat16() for name, tensor in WEIGHTS["byte_lm"].items()}
    blocks = KvBlocks(config, blocks=8, device="cpu")
    text = tokens_of(config, 30)
    step(weights, config, blocks, ["a"], [text[:29]])
    found = step(weights, config, blocks, ["a"], [text[29:]])[0]
    expected = forward(WEIGHTS["byte_lm"], replace(config, dtype=torch.float32), text)[-1]
    assert (found.float() - expected).abs().max() < 0.2 * expected.std()


@pytest.mark.gpu
@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_on_a_gpu_is_the_forward(name):
    """Prefill of two sequences, then one of them decodes while a third prefills."""
    config, weights = CONFIGS[name], {key: tensor.cuda() for key, tensor in WEIGHTS[name].items()}
    text, expected = (tensor.cuda() for tensor in alone(name))
    blocks = KvBlocks(config, blocks=40, block_tokens=4, device="cuda")
    first = step(weights, config, blocks, [0, 1], [text[0, :20], text[1, :9]])
    second = step(weights, config, blocks, [0, 2], [text[0, 20:21], text[2, :31]])
    found, right = torch.cat((first, second)), torch.stack((expected[0, 19], expected[1, 8], expected[0, 20], expected[2, 30]))
    torch.testing.assert_close(found, right, rtol=1e-3, atol=1e-2 * right.std().item())


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_behind_every_token_are_the_forward(name):
    text, expected = alone(name)
    blocks = KvBlocks(CONFIGS[name], blocks=40, block_tokens=4, device="cpu")
    step_over_all(WEIGHTS[name], CONFIGS[name], blocks, [0], [text[0, :7]])
    found = step_over_all(WEIGHTS[name], CONFIGS[name], blocks, [0, 1], [text[0, 7:12], text[1, :9]])
    close(found, torch.cat((expected[0, 7:12], expected[1, :9])))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_decode_step_says_what_the_forward_says(name):
    """Two of three slots are taken, one is freed and taken by another sequence."""
    config, weights = CONFIGS[name], WEIGHTS[name]
    text, _ = alone(name)
    blocks = KvBlocks(config, blocks=40, block_tokens=4, device="cpu")
    decode = DecodeStep(weights, config, blocks, 3, 40)
    said = {}

    def enter(slot, sequence, count):
        blocks.reserve(sequence, 40)
        logits = step(weights, config, blocks, [sequence], [text[sequence, :count]])
        decode.enter(slot, sequence, logits[0].argmax())
        said[slot] = [*text[sequence, :count].tolist(), int(logits.argmax())]

    def run(times):
        for _ in range(times):
            decode.run()
            for slot, tokens in said.items():
                close(decode.logits[slot], forward(weights, config, torch.tensor(tokens))[-1])
                tokens.append(int(decode.tokens[slot]))

    enter(2, 0, 11)
    enter(0, 1, 3)
    run(6)
    decode.leave(2)
    del said[2]
    blocks.release(0)
    enter(1, 2, 8)
    run(5)
    for slot, sequence in ((0, 1), (1, 2)):
        decode.leave(slot)
        blocks.release(sequence)
    assert blocks.pool.free == 39


def test_a_sequence_with_too_many_blocks_enters_no_slot():
    blocks = KvBlocks(TINY, blocks=9, block_tokens=4, device="cpu")
    decode = DecodeStep(WEIGHTS["windows and sinks"], TINY, blocks, 1, 8)
    blocks.reserve("a", 9)
    with pytest.raises(ValueError, match="sequence 'a' has 3 blocks; expected at most 2"):
        decode.enter(0, "a", torch.tensor(1))
