"""A machine with a GPU whose measurements are what a test says."""

from contextlib import nullcontext

import pytest

from common.python import suite
from tests.tools.cli.recorded_bench import SIDE, WORKLOAD, Bench


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "pairs" / "ch07"
    folder.mkdir(parents=True)
    (folder / "workload_add.py").write_text(WORKLOAD)
    (folder / "baseline_add.py").write_text(SIDE.format("Baseline", 1, 1))
    (folder / "optimized_add.py").write_text(SIDE.format("Optimized", "1.0", "1.0"))
    return folder.parent


@pytest.fixture
def bench(root, server, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(suite, "fork_server", lambda *_: nullcontext(server))
    monkeypatch.setattr(suite, "lock", lambda *_: nullcontext())
    return Bench(root, tmp_path / "runs", monkeypatch, capsys)
