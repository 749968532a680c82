"""A captured call: it reads at its replay, keeps what it reads, is captured behind first calls, and is destroyed when it is closed."""

import gc
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from common.graph import captured


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_what_the_call_reads_is_read_anew_and_kept(device, monkeypatch):
    if device == "cpu":  # a side that runs there sees no GPU
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    x = torch.ones(1000, device=device)

    def doubling():
        factor = torch.full_like(x, 2.0)
        return captured(lambda: x * factor)  # nobody else has the factor

    graph = doubling()
    gc.collect()
    others = [torch.zeros_like(x) for _ in range(100)]  # where the factor would have been
    x.fill_(3.0)
    assert torch.equal(graph(), torch.full_like(x, 6.0))
    x.fill_(4.0)
    assert torch.equal(graph(), torch.full_like(x, 8.0))
    graph.close()
    assert len(others) == 100


@pytest.fixture
def told(monkeypatch):
    """What is asked of stand-ins for torch's streams and graphs."""
    told = []

    class Graph:
        def replay(self):
            told.append("replay")

        def reset(self):
            told.append("reset")

    @contextmanager
    def capture(graph, pool, stream, capture_error_mode):
        told.append(f"begin {capture_error_mode} {pool} {stream}")
        yield
        told.append("end")

    stream = SimpleNamespace(wait_stream=lambda other: told.append("wait"))
    for name, stand_in in {
        "is_available": lambda: True,
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": nullcontext,
        "CUDAGraph": Graph,
        "graph": capture,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return told


def test_a_graph_is_captured_behind_first_calls_and_destroyed_when_closed(told):
    graph = captured(lambda: told.append("call") or 7)
    assert told == ["wait", "call", "call", "call", "wait", "begin thread_local None None", "call", "end"]
    told.clear()
    assert graph() == 7
    graph.close()
    assert told == ["replay", "reset"]


def test_a_graph_is_captured_in_the_pool_and_the_stream_that_are_named(told):
    class Urgent(SimpleNamespace):
        def __str__(self):
            return "urgent"

    captured(lambda: None, (0, 1), Urgent(wait_stream=lambda other: None))
    assert "begin thread_local (0, 1) urgent" in told
