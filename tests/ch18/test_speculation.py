"""Rounds of speculation say what the model alone would say, whatever the drafts; NVFP4 rounds to its nearest values."""

import random
from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.decoder import forward, init
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of

TARGET = replace(
    presets.byte_lm(), vocabulary=37, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, intermediate=48, dtype=torch.float32
)
DRAFT = replace(TARGET, hidden=16, layers=1, heads=1)
NEW = 12  # tokens


def weights_of(config, seed):
    """Larger than those of `init`, so that a wrong context would be seen."""
    drawn = init(config, torch.Generator().manual_seed(seed))
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in drawn.items()}


MODEL = (weights_of(TARGET, 3), TARGET)
UNRELATED = (weights_of(DRAFT, 4), DRAFT)
NEARLY = ({name: w + 0.02 * torch.randn(w.shape, generator=torch.Generator().manual_seed(5)) for name, w in MODEL[0].items()}, TARGET)


@pytest.fixture
def chapter(monkeypatch):
    """The chapter's modules can be imported, and are forgotten afterwards."""
    with modules_of(PROJECT_ROOT / "ch18", monkeypatch):
        yield


def alone(prompt):
    tokens = list(prompt)
    for _ in range(NEW):
        tokens.append(int(forward(*MODEL, torch.tensor(tokens))[-1].argmax()))
    return tokens[len(prompt) :]


def answers(prompts, draft, depth, width):
    """Each prompt's answer over two slots that are taken anew, and the tokens of every round."""
    from shared_rounds import Rounds

    rounds = Rounds(MODEL, draft, 2, 12 + NEW, depth, width, torch.device("cpu"))
    waiting, running, said, counted = list(enumerate(prompts)), {}, {}, []
    while waiting or running:
        for slot in {0, 1} - running.keys():
            if waiting:
                running[slot], prompt = waiting.pop(0)
                said[running[slot]] = [int(rounds.admit(slot, torch.tensor(prompt)).argmax())]
        tokens, counts, logits = rounds.next()
        assert torch.equal(logits.argmax(-1), tokens)
        for slot, number in list(running.items()):
            counted.append(int(counts[slot]))
            said[number] += tokens[slot, : counts[slot]].tolist()
            if len(said[number]) >= NEW:
                rounds.release(slot)
                del running[slot]
    return [said[number][:NEW] for number in range(len(prompts))], counted


@pytest.mark.parametrize("draft", [UNRELATED, NEARLY, MODEL], ids=["unrelated", "nearly", "itself"])
@pytest.mark.parametrize(("depth", "width"), [(0, 1), (1, 5), (4, 1), (3, 2)])
def test_rounds_say_what_the_model_says(chapter, draft, depth, width):
    rng = random.Random(depth)
    prompts = [[rng.randrange(37) for _ in range(rng.choice((1, 2, 7, 12)))] for _ in range(3)]
    said, _ = answers(prompts, draft, depth, width)
    assert said == [alone(prompt) for prompt in prompts]


def test_a_draft_that_is_the_model_always_stands(chapter):
    _, counted = answers([[1, 2, 3], [4]], MODEL, 4, 1)
    assert set(counted) == {5}


def test_a_tree_gets_further_than_a_chain(chapter):
    chain, tree = (answers([[1, 2, 3], [4], [5, 6]], NEARLY, 4, width)[1] for width in (1, 4))
    assert sum(tree) / len(tree) > sum(chain) / len(chain) > 1


def test_nvfp4_takes_its_own_values_as_they_are_and_others_to_the_nearest(chapter):
    from shared_nvfp4 import quantized, restored

    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0, 6.0])
    exact = torch.stack((values, values.flip(0) * 448))
    assert torch.equal(restored(quantized(exact)), exact)
    w = torch.randn(8, 64, generator=torch.Generator().manual_seed(1))
    off = (restored(quantized(w)) - w).unflatten(1, (-1, 16))
    most = w.unflatten(1, (-1, 16)).abs().amax(-1, keepdim=True)
    assert bool((off.abs() <= most / 6 * 1.08).all())  # half of the widest gap, 4 to 6, and what the scale's own rounding adds
    assert not restored(quantized(torch.zeros(2, 32))).any()
