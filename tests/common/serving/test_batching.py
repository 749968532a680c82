"""How many tokens of each sequence a step takes, and that a server keeps to its budget and answers as the model does."""

import functools
import random
from dataclasses import dataclass, replace

import pytest
import torch

from common.models import config as presets
from common.models.decoder import forward, init
from common.serving.batching import Batcher, everything, plan

TINY = replace(presets.byte_lm(), vocabulary=37, hidden=32, layers=2, head_dim=16, intermediate=48, dtype=torch.float32)


@pytest.mark.parametrize(
    ("waiting", "budget", "counts"),
    [
        ((1, 1, 50), 16, [1, 1, 16]),
        ((10, 10, 10), 16, [10, 6, 0]),
        ((20, 1, 20), 20, [20, 1, 0]),
        ((1, 40, 1, 30), 10, [1, 10, 1, 0]),
        ((1, 9), 64, [1, 9]),
        ((1, 40, 7), None, [1, 40, 7]),
        ((1, 1), 0, [1, 1]),
    ],
)
def test_sequences_that_decode_come_first_and_prompts_share_the_budget(waiting, budget, counts):
    assert plan(waiting, budget) == counts


@dataclass(frozen=True)
class Request:
    id: int
    prompt: list[int]


class Clients:
    """Requests a few at a time, each done after as many tokens as `wanted` says."""

    def __init__(self, rng, count):
        self.requests = [Request(i, [rng.randrange(37) for _ in range(rng.randint(1, 30))]) for i in range(count)]
        self.wanted = [rng.randint(1, 9) for _ in self.requests]
        self.said = [[] for _ in self.requests]
        self._left = list(self.requests)

    def wait(self):
        came, self._left = self._left[:3], self._left[3:]
        return came

    poll = wait

    def emit(self, requests, tokens, logits):
        assert torch.equal(logits.argmax(-1), tokens)
        for request, token in zip(requests, tokens.tolist(), strict=True):
            self.said[request.id].append(token)
        return {request.id for request in requests if len(self.said[request.id]) == self.wanted[request.id]}


@functools.cache
def weights():
    drawn = init(TINY, torch.Generator().manual_seed(3))
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in drawn.items()}


@pytest.mark.parametrize("most", [None, 7, 1])
def test_a_server_answers_as_the_model_does_within_its_budget(most):
    clients, budgets, taken = Clients(random.Random(5), count=11), [], []

    def budget(decoding):
        budgets.append((most, decoding))
        return everything(decoding) if most is None else most

    Batcher(weights(), TINY, 4, 40, torch.device("cpu")).serve(clients, clients.emit, budget, taken.append)
    for request, wanted, said in zip(clients.requests, clients.wanted, clients.said, strict=True):
        assert len(said) == wanted
        logits = forward(weights(), TINY, torch.tensor([*request.prompt, *said[:-1]])[None])[0, len(request.prompt) - 1 :]
        assert (logits.gather(-1, torch.tensor(said)[:, None])[:, 0] >= logits.amax(-1) - 1e-4 * logits.std(-1)).all()
    assert sum(taken) == sum(len(request.prompt) + len(said) - 1 for request, said in zip(clients.requests, clients.said, strict=True))
    assert most is None or all(tokens <= most + decoding for tokens, (most, decoding) in zip(taken, budgets, strict=True))
