"""What a front knows of its engines' load, and that engines in processes say what the model says."""

from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.decoder import forward, init
from common.serving.engines import Load, Size, started

CONFIG = replace(presets.tiny(), sinks=False)


@pytest.mark.parametrize("budget", [None, 4, 1])
def test_two_engines_answer_as_the_model_does(budget):
    weights = init(CONFIG, torch.Generator().manual_seed(3))
    prompts = {name: list(range(5 + name, 14 + 2 * name)) for name in range(5)}
    said = {name: [] for name in prompts}
    open_names = set(prompts)
    with started(weights, CONFIG, 2, Size(2, 40, budget), torch.device("cpu")) as fleet:
        for name, prompt in prompts.items():
            fleet.send(name % 2, name, prompt)
        assert fleet.loads == [
            Load(3, sum(len(prompts[name]) for name in (0, 2, 4)), 0),
            Load(2, sum(len(prompts[name]) for name in (1, 3)), 0),
        ]
        while open_names:
            for answer in fleet.poll(0.01):
                for name, token, row in zip(answer.names, answer.tokens, answer.logits, strict=True):
                    expected = forward(weights, CONFIG, torch.tensor(prompts[name] + said[name]))[-1]
                    torch.testing.assert_close(row, expected, rtol=1e-4, atol=1e-4)
                    said[name].append(token)
                    if len(said[name]) == 4:
                        fleet.forget(name)
                        open_names.remove(name)
        assert fleet.loads == [Load(), Load()]


@pytest.mark.parametrize("budget", [None, 9])  # with 9 a last chunk has a single token
def test_a_request_that_is_moved_goes_on_elsewhere_and_its_old_slot_is_free_again(budget):
    weights = init(CONFIG, torch.Generator().manual_seed(3))
    prompts = {name: list(range(5 + name, 24 + 2 * name)) for name in range(5)}  # more than one block each
    said, engines = {name: [] for name in prompts}, {name: [] for name in prompts}
    open_names = set(prompts)
    with started(weights, CONFIG, 2, Size(2, 40, budget), torch.device("cpu")) as fleet:
        for name, prompt in prompts.items():
            fleet.send(0, name, prompt, held=True)
        with pytest.raises(ValueError, match="request 0 is not held, or has no token yet; expected one that was sent with held=True"):
            fleet.move(0, 1)
        while open_names:
            for answer in fleet.poll(0.01):
                for name, token, row in zip(answer.names, answer.tokens, answer.logits, strict=True):
                    expected = forward(weights, CONFIG, torch.tensor(prompts[name] + said[name]))[-1]
                    torch.testing.assert_close(row, expected, rtol=1e-4, atol=1e-4)
                    said[name].append(token)
                    engines[name].append(answer.engine)
                    if len(said[name]) == (1 if name == 4 else 4):
                        fleet.forget(name)
                        open_names.remove(name)
                    elif answer.engine == 0:
                        fleet.move(name, 1)
        assert fleet.loads == [Load(), Load()]
    assert engines == {name: [0] if name == 4 else [0, 1, 1, 1] for name in prompts}


def test_a_long_prompt_in_chunks_lets_others_decode():
    weights, spoken = init(CONFIG, torch.Generator().manual_seed(3)), []
    with started(weights, CONFIG, 1, Size(2, 80, 4), torch.device("cpu")) as fleet:
        fleet.send(0, "short", [1, 2, 3])
        while len(spoken) < 8:
            for answer in fleet.poll(0.01):
                if not spoken:
                    fleet.send(0, "long", list(range(60)))  # fifteen chunks
                spoken += answer.names
    assert "long" not in spoken
