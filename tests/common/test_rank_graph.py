"""A rank's graph: it reads at its replay, keeps what it reads, is captured behind a first call, and is destroyed when it is closed."""

import gc
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
import torch

from common.rank_graph import RankGraph


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_what_the_call_reads_is_read_anew_and_kept(device):
    x = torch.ones(1000, device=device)

    def doubling():
        factor = torch.full_like(x, 2.0)
        return RankGraph(lambda: x * factor, x.device)  # nobody else has the factor

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
    def capture(graph, capture_error_mode):
        told.append(f"begin {capture_error_mode}")
        yield
        told.append("end")

    stream = SimpleNamespace(wait_stream=lambda other: told.append("wait"))
    for name, stand_in in {
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": nullcontext,
        "CUDAGraph": Graph,
        "graph": capture,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return told


def test_a_graph_is_captured_behind_a_first_call_and_destroyed_when_closed(told):
    graph = RankGraph(lambda: told.append("call") or 7, torch.device("cuda"))
    assert told == ["wait", "call", "wait", "begin thread_local", "call", "end"]
    told.clear()
    assert graph() == 7
    graph.close()
    assert told == ["replay", "reset"]
