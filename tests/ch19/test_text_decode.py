"""ch19's sides that read a text in one CUDA graph: what the graph reads must outlive their set-up."""

import contextlib
import gc
import weakref
from types import SimpleNamespace
from unittest import mock

import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT


def test_the_caches_that_a_graph_writes_to_live_as_long_as_the_step(monkeypatch):
    """A graph keeps addresses alone: caches freed behind `prepare` would be other tensors' memory when it runs."""
    monkeypatch.syspath_prepend(ROOT / "ch19")
    side = import_file(ROOT / "ch19/baseline_dynamic_precision_switching.py")
    alive = []

    def reader(*_):
        caches, out = torch.zeros(3), torch.zeros(1)
        alive.append(weakref.ref(caches))
        return lambda: caches.add_(1), out

    graphs = {"CUDAGraph": mock.MagicMock(), "graph": mock.MagicMock(), "Stream": mock.MagicMock(), "current_stream": mock.MagicMock()}
    here = {"is_available": lambda: True, "stream": lambda _: contextlib.nullcontext()}
    with mock.patch.object(side, "reader", reader), mock.patch.multiple(torch.cuda, **graphs, **here):
        step = side.prepare({}, None, SimpleNamespace(device=torch.device("cuda")))
        gc.collect()
        assert alive[0]() is not None
        step()
