"""Chapter 18: speculation by a chain and by a tree says, greedily, what the trained model says alone, for 200 prompts held out.

Sampled, a draft's distribution changes nothing: tokens are distributed as the trained model's.

The models compute in float32: in bfloat16 two tokens may have the same logit, and which is the larger one depends on the order of sums.
"""

import random
import sysconfig
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from common.models.config import byte_lm, byte_lm_draft
from common.models.train_byte_lm import read_corpus
from common.python.child.sides.assets import read_asset
from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT
from common.serving.dense_cache import DenseCache, dense_step
from common.serving.sampler import accept_sampled, distribution, sample
from common.serving.speculation import Rounds
from common.tensor_files import read_tensors
from tests.support.chapters import modules_of
from tests.support.chi_square import fits

SIDES = ["optimized_speculative_decoding", "optimized_multi_draft_speculative"]
PROMPTS, LENGTHS, LONGEST, SLOTS = 200, (17, 32, 45, 64), 16, 50


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Beside other tests, threads do little but wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def trained(name, config):
    weights = read_tensors(read_asset(name).data, torch.device("cpu"))
    return {key: tensor.float() for key, tensor in weights.items()}, replace(config, dtype=torch.float32)


@pytest.fixture(scope="module")
def models():
    return *trained("byte_lm", byte_lm()), *trained("byte_lm_draft", byte_lm_draft())


@pytest.fixture(scope="module")
def prompts():
    """From the files that training held out; a Python of another version than the models' has other files there."""
    text = bytes(read_corpus(Path(sysconfig.get_paths()["stdlib"])).validation.numpy())
    rng = random.Random(18)
    starts = [rng.randrange(len(text) - max(LENGTHS)) for _ in range(PROMPTS)]
    return [list(text[start : start + LENGTHS[i % len(LENGTHS)]]) for i, start in enumerate(starts)]


@pytest.fixture(scope="module")
def alone(models, prompts):
    """What the target says without drafts, a token a step, over a cache of another kind."""
    weights, config, *_ = models
    said = {}
    for length in LENGTHS:
        some = [i for i, prompt in enumerate(prompts) if len(prompt) == length]
        cache = DenseCache(config, sequences=len(some), capacity=length + LONGEST, device="cpu")
        tokens = [torch.tensor([prompts[i] for i in some])]
        for _ in range(LONGEST):
            tokens.append(dense_step(weights, config, cache, tokens[-1])[:, -1:].argmax(-1))
        said |= dict(zip(some, torch.cat(tokens[1:], 1).tolist(), strict=True))
    return [said[i] for i in range(len(prompts))]


class Trace:
    """Requests that all come at once, and what is said to them."""

    def __init__(self, prompts):
        self.waiting = [SimpleNamespace(id=i, prompt=prompt) for i, prompt in enumerate(prompts)]
        self.said = [[] for _ in prompts]

    def poll(self):
        return []

    def wait(self):
        waiting, self.waiting = self.waiting, []
        return waiting

    def emit(self, requests, tokens, logits):
        for request, token in zip(requests, torch.as_tensor(tokens).tolist(), strict=True):
            self.said[request.id].append(token)
        return {request.id for request in requests if len(self.said[request.id]) == LONGEST}


def answers(side, models, prompts, monkeypatch):
    """What the side says to each prompt, and its tokens per round."""
    trace, reported = Trace(prompts), {}
    with modules_of(PROJECT_ROOT / "ch18", monkeypatch), torch.inference_mode():
        prepare = import_file(PROJECT_ROOT / f"ch18/{side}.py").prepare
        prepare(*models, SLOTS, max(LENGTHS), LONGEST, trace, trace.emit, reported.__setitem__, torch.device("cpu"))()
    return trace.said, reported["tokens_per_round"].value


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_speculation_says_what_the_target_says(side, models, prompts, alone, monkeypatch):
    said, per_round = answers(side, models, prompts, monkeypatch)
    assert [i for i in range(PROMPTS) if said[i] != alone[i]] == []
    assert per_round > 2  # drafts stand, and are not merely thrown away


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_a_draft_that_stands_against_the_target_is_seen(side, models, prompts, alone, monkeypatch):
    plain = Rounds._agreed

    def first_stands(self, tokens, parents, choices):
        """As if the target chose, behind the newest token, what is drafted first."""
        return plain(self, tokens, parents, torch.cat((tokens[:, 1:2], choices[:, 1:]), 1))

    monkeypatch.setattr(Rounds, "_agreed", first_stands)
    said, _ = answers(side, models, prompts[:8], monkeypatch)
    assert said != alone[:8]


def behind(weights, config, tokens):
    """Logits [sequences, vocabulary] behind tokens [sequences, count]."""
    cache = DenseCache(config, sequences=len(tokens), capacity=tokens.shape[1], device="cpu")
    return dense_step(weights, config, cache, tokens)[:, -1]


@pytest.mark.slow
def test_sampled_tokens_are_distributed_as_the_targets(models, prompts):
    weights, config, *draft = models
    prompt, samples, generator = torch.tensor(prompts[:1]), 20_000, torch.Generator().manual_seed(18)
    every = torch.cat((prompt.expand(config.vocabulary, -1), torch.arange(config.vocabulary)[:, None]), 1)
    first, drafts = (distribution(behind(*model, prompt)) for model in ((weights, config), draft))
    second = distribution(behind(weights, config, every))  # of each first token
    drafted = sample(drafts.expand(samples, -1), generator)
    targets = torch.stack((first.expand(samples, -1), second[drafted]), 1)
    tokens, counts = accept_sampled(drafted[:, None], drafts.expand(samples, 1, -1), targets, generator)
    stood = counts == 2
    share = torch.minimum(first, drafts).sum().item()
    assert stood.float().mean().item() == pytest.approx(share, abs=4 * (share * (1 - share) / samples) ** 0.5)
    assert fits(tokens[:, 0].bincount(minlength=config.vocabulary), first[0]) > 0.001
    assert fits(drafted.bincount(minlength=config.vocabulary), first[0]) < 1e-6  # what accepting always would say
    likeliest = tokens[stood, 0].mode().values
    assert fits(tokens[stood & (tokens[:, 0] == likeliest), 1].bincount(minlength=config.vocabulary), second[likeliest]) > 0.001
