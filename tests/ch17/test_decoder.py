"""Decoding of a wave as one launch: each token sees its own wave's prompt and the tokens before it, wave after wave in one cache."""

import pytest
import torch

from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

LAYERS, HIDDEN, HEADS, FFN = 2, 128, 2, 96
SEQUENCES, TOKENS, STEPS, WAVES = 3, 5, 4, 3


@pytest.fixture(autouse=True)
def chapter(monkeypatch):
    """The chapter's shared modules can be imported, and are forgotten afterwards."""
    with modules_of(ROOT / "ch17", monkeypatch):
        yield


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_each_wave_is_decoded_behind_its_own_prompt(device):
    from shared_decoder import Decoder
    from shared_layers import run
    from shared_weights import config_of

    config = config_of(LAYERS, HIDDEN, HEADS, FFN)
    generator = torch.Generator(device).manual_seed(3)

    def normal(*shape, std=1.0):
        return torch.randn(shape, generator=generator, device=device).mul(std).bfloat16()

    shapes = dict.fromkeys("qkvo", (HIDDEN, HIDDEN)) | {"gate_up": (2 * FFN, HIDDEN), "down": (HIDDEN, FFN)}
    weights = [{name: normal(*shape, std=shape[1] ** -0.5) for name, shape in shapes.items()} for _ in range(LAYERS)]
    decoder = Decoder(weights, config, SEQUENCES, TOKENS, STEPS, normal(1))
    answers = []
    for _ in range(WAVES):
        prompts, following = normal(SEQUENCES, TOKENS, HIDDEN), normal(SEQUENCES, STEPS, HIDDEN)
        run(weights, config, prompts, decoder.cache, 0)
        answers.append(decoder.decode(following).clone())
        whole = torch.cat((prompts, following), dim=1)
        expected = run(weights, config, whole, torch.zeros_like(decoder.cache), 0)[:, TOKENS:]
        torch.testing.assert_close(answers[-1], expected, rtol=0.02, atol=0.1)
    assert not torch.allclose(answers[0], answers[1], atol=0.5)
