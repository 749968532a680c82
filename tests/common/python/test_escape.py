"""How long a stream is held to look for work that is not on it: long enough to queue a step, and not a second for one that waits."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from common.python import escape
from common.python.workload import Spec

EMPTY = torch.empty


@pytest.fixture
def held(monkeypatch):
    """How long the stream is held, in ms, over a step that took so many seconds when it was waited for."""
    holds = []
    helpers = SimpleNamespace(block=lambda ns: holds.append(ns / 1e6), release=lambda: None, expired=False)
    monkeypatch.setattr(escape, "device_helpers", lambda: helpers)
    monkeypatch.setattr(torch, "empty", lambda *shape, dtype, device: EMPTY(*shape, dtype=dtype))
    monkeypatch.setattr(torch.cuda, "Stream", lambda: SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setattr(torch.cuda, "stream", lambda _stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def over(call_s):
        y = torch.ones(3)
        escape.HeldCall(lambda: y, lambda returned: {"y": returned}, {"y": Spec((3,), torch.float32)}, {}, call_s)
        return holds.pop()

    return over


@pytest.mark.parametrize(("call_s", "ms"), [(1e-4, 200), (0.05, 500), (0.2, 1000), (3.0, 1000)])
def test_a_stream_is_held_for_ten_calls(held, call_s, ms):
    assert held(call_s) == pytest.approx(ms)
