"""Rounds of speculation say what the model alone would say, whatever the drafts."""

import random
from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.decoder import forward, init
from common.models.e4m3 import FeedForward
from common.serving.slot_cache import Model
from common.serving.speculation import Rounds, Size

TARGET = replace(
    presets.byte_lm(), vocabulary=37, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, intermediate=48, dtype=torch.float32
)
DRAFT = replace(TARGET, hidden=16, layers=1, heads=1)
NEW = 12  # tokens


def weights_of(config, seed):
    """Larger than those of `init`, so that a wrong context would be seen."""
    drawn = init(config, torch.Generator().manual_seed(seed))
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in drawn.items()}


MODEL = Model(weights_of(TARGET, 3), TARGET)
UNRELATED = Model(weights_of(DRAFT, 4), DRAFT)
NEARLY = Model({name: w + 0.02 * torch.randn(w.shape, generator=torch.Generator().manual_seed(5)) for name, w in MODEL[0].items()}, TARGET)
E4M3 = Model(*MODEL[:2], FeedForward(*MODEL[:2]))


def alone(prompt):
    tokens = list(prompt)
    for _ in range(NEW):
        tokens.append(int(forward(*MODEL[:2], torch.tensor(tokens))[-1].argmax()))
    return tokens[len(prompt) :]


def answers(prompts, draft, depth, width):
    """Each prompt's answer over two slots that are taken anew, and the tokens of every round."""
    rounds = Rounds(MODEL, draft, Size(2, 12 + NEW, depth, width), torch.device("cpu"))
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


@pytest.mark.parametrize("draft", [UNRELATED, NEARLY, E4M3, MODEL], ids=["unrelated", "nearly", "e4m3", "itself"])
@pytest.mark.parametrize(("depth", "width"), [(0, 1), (1, 5), (4, 1), (3, 2)])
def test_rounds_say_what_the_model_says(draft, depth, width):
    rng = random.Random(depth)
    prompts = [[rng.randrange(37) for _ in range(rng.choice((1, 2, 7, 12)))] for _ in range(3)]
    said, _ = answers(prompts, draft, depth, width)
    assert said == [alone(prompt) for prompt in prompts]


def test_a_draft_that_is_the_model_always_stands():
    _, counted = answers([[1, 2, 3], [4]], MODEL, 4, 1)
    assert set(counted) == {5}


def test_a_tree_gets_further_than_a_chain():
    chain, tree = (answers([[1, 2, 3], [4], [5, 6]], NEARLY, 4, width)[1] for width in (1, 4))
    assert sum(tree) / len(tree) > sum(chain) / len(chain) > 1
