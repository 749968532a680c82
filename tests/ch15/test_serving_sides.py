"""Random traces against every side that serves: each request gets its tokens, they are the model's, and all blocks come back."""

import random
from dataclasses import replace

import pytest
import torch

from common.models import config as presets
from common.models.decoder import forward, init
from common.python.child.sides.loader import load_side, load_workload
from common.python.pairs.serving import Request
from common.python.project import PROJECT_ROOT
from common.serving import lanes
from common.serving.kv_blocks import KvBlocks
from common.serving.lanes import Lane, Mark

pytestmark = pytest.mark.slow

TARGET = replace(
    presets.byte_lm(), vocabulary=37, hidden=32, layers=2, heads=2, kv_heads=1, head_dim=16, intermediate=48, dtype=torch.float32
)
DRAFT = replace(TARGET, hidden=16, layers=1, heads=1)
PROMPT, LONGEST = 40, 24
SHAPES = {
    "continuous_batching": ({"slots": 3}, {"slots": 1}),
    "kv_cache_management": ({"budget": 64}, {"budget": 112}, {"budget": 500}),
    "prefix_caching": ({"slots": 3, "blocks": 4}, {"slots": 2, "blocks": 9}, {"slots": 4, "blocks": 40}),
    "speculative_decoding": ({"slots": 3, "drafts": 1}, {"slots": 2, "drafts": 4}),
    "inference_monolithic": ({"slots": 3}, {"slots": 1}),
    "disaggregated_inference": ({"slots": 3, "budget": 8, "decode_sms": 8}, {"slots": 1, "budget": 64, "decode_sms": 8}),
}
OPTIMIZED_TRACES, BASELINE_TRACES = 168, 12  # of each side: more than a thousand of optimized sides


def weights_of(config, seed):
    """Larger than those of `init`, so that a wrong context would be seen."""
    drawn = init(config, torch.Generator().manual_seed(seed))
    return {name: tensor * (1 if name.endswith("norm") else 10) for name, tensor in drawn.items()}


WEIGHTS, DRAFT_WEIGHTS = weights_of(TARGET, 3), weights_of(DRAFT, 4)


class Clients:
    """Requests that come at random glances, and what is emitted for them: the contract of serving, without processes."""

    def __init__(self):
        self.begin(random.Random(0))

    def begin(self, rng):
        """The next trace."""
        self._rng = rng
        prefix = [rng.randrange(37) for _ in range(rng.choice((0, 16, 20)))]
        prompts = [
            [*(prefix if rng.random() < 0.7 else []), *(rng.randrange(37) for _ in range(rng.randint(1, PROMPT - 20)))]
            for _ in range(rng.randint(1, 9))
        ]
        self.requests = [Request(i, prompt, LONGEST) for i, prompt in enumerate(prompts)]
        self._wanted = [rng.choice((1, 2, rng.randint(1, LONGEST), LONGEST)) for _ in self.requests]
        self.said = [[] for _ in self.requests]
        self._handed = 0

    def poll(self):
        first, self._handed = self._handed, min(len(self.requests), self._handed + self._rng.choice((0, 0, 1, 5)))
        return self.requests[first : self._handed]

    def wait(self):
        first = self._handed
        self._handed = min(len(self.requests), first + self._rng.randint(1, 4))
        return self.requests[first : self._handed]

    def emit(self, requests, tokens, logits):
        assert len(requests) == len(tokens) == len(logits)
        for request, token in zip(requests, tokens, strict=True):
            assert request.id < self._handed
            self.said[request.id].append(int(token))
            assert len(self.said[request.id]) <= self._wanted[request.id]
        return {request.id for request in requests if len(self.said[request.id]) == self._wanted[request.id]}

    def require_right(self):
        """Every request has its tokens, and each is the greedy choice behind those before it."""
        assert [len(said) for said in self.said] == self._wanted
        for request, said in zip(self.requests, self.said, strict=True):
            logits = forward(WEIGHTS, TARGET, torch.tensor([*request.prompt, *said[:-1]]))[len(request.prompt) - 1 :]
            below = logits.amax(-1) - logits.gather(-1, torch.tensor(said)[:, None])[:, 0]
            assert below.max() < 1e-3 * logits.std()


def require_all_back(caches):
    """No sequence is left; what is held is a spare block of a decode step, or known prefixes, each once."""
    for cache in caches:
        assert not cache._tables
        assert all(cache.pool.holders(block) <= 1 for block in range(cache.keys.shape[1]))


@pytest.fixture
def caches(monkeypatch):
    """Every pool of blocks that a side makes."""
    made, original = [], KvBlocks.__init__

    def recorded(self, *arguments, **named):
        original(self, *arguments, **named)
        made.append(self)

    monkeypatch.setattr(KvBlocks, "__init__", recorded)
    return made


@pytest.mark.parametrize("side", ["baseline", "optimized"])
@pytest.mark.parametrize("name", SHAPES)
def test_random_traces_are_answered_and_give_their_blocks_back(name, side, caches):
    torch.set_num_threads(1)
    folder = PROJECT_ROOT / "ch15"
    loaded = load_side(folder / f"{side}_{name}.py", load_workload(folder / f"workload_{name}.py"), None)
    rng, clients, reported = random.Random(f"{name} {side}"), Clients(), []
    given = {"arrivals": clients, "emit": clients.emit, "report": lambda *figure: reported.append(figure), "device": torch.device("cpu")}
    models = {"weights": WEIGHTS, "config": TARGET, "draft_weights": DRAFT_WEIGHTS, "draft_config": DRAFT}
    traces = OPTIMIZED_TRACES if side == "optimized" else BASELINE_TRACES
    for shape in SHAPES[name]:
        serve = loaded.prepare({**given, **models}, {**shape, "prompt": PROMPT, "longest": LONGEST})
        for _ in range(traces // len(SHAPES[name])):
            clients.begin(random.Random(rng.random()))
            serve()
            clients.require_right()
            require_all_back(caches)
    if (name, side) == ("kv_cache_management", "optimized"):
        assert any(figure == "preempted" and metric.value > 0 for figure, metric in reported)


class Watched(Lane):
    """A lane of a CPU that counts what is launched into it, and how much of that somebody has waited for."""

    def __init__(self):
        super().__init__(None)
        self.launched, self.over, self.ahead = 0, 0, []

    def __enter__(self):
        self.ahead.append(self.launched - self.over)
        self.launched += 1

    def mark(self):
        return WatchedMark(self, self.launched)


class WatchedMark(Mark):
    """An end of a watched lane's work, reached as far as others can tell."""

    def __init__(self, lane, launched):
        super().__init__(None)
        self._lane, self._launched = lane, launched

    def wait(self):
        self._lane.over = max(self._lane.over, self._launched)


def test_at_most_one_decode_step_is_queued_ahead(monkeypatch):
    """A prompt that is done decodes behind all steps that were launched before."""
    torch.set_num_threads(1)
    folder, decode = PROJECT_ROOT / "ch15", Watched()
    monkeypatch.setattr(lanes, "split_sms", lambda *_: (decode, Watched()))
    workload = load_workload(folder / "workload_disaggregated_inference.py")
    side, clients = load_side(folder / "optimized_disaggregated_inference.py", workload, None), Clients()
    given = {"arrivals": clients, "emit": clients.emit, "device": torch.device("cpu"), "weights": WEIGHTS, "config": TARGET}
    serve = side.prepare(given, {"slots": 3, "decode_sms": 8, "prompt": PROMPT, "longest": LONGEST})
    clients.begin(random.Random(1))
    serve()
    clients.require_right()
    assert len(decode.ahead) > 3
    assert max(decode.ahead) == 1
