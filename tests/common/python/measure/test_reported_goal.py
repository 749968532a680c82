"""A figure that depends on what sides prepare from has an interval over seeds."""

import json

import pytest

from tests.support.commands import benchmark_here, write_pair

SIDE = '''"""A sum that is kept as this side's figure."""

import shared_found


def prepare(x, w):
    shared_found.FOUND["loss"] = FACTOR * float(w.exp().mean())
    return lambda: x * 2
'''
FOUND = '''"""What the side of this process has found."""

from common import Metric

FOUND = {"loss": 1.0}


def metrics():
    return {"loss": Metric(FOUND["loss"], "nats", "lower")}
'''


@pytest.mark.slow
def test_each_process_pair_has_constants_of_its_own_and_both_sides_have_the_same(tmp_path):
    root = write_pair(
        tmp_path / "root",
        baseline=SIDE.replace("FACTOR", "3"),
        optimized=SIDE.replace("FACTOR", "2").replace("A sum", "Another sum"),
        inputs='lambda rand, n: {"x": rand.normal(n), "w": rand.normal(n)}',
        constants='("w",)',
        goal='"loss"',
        metrics='__import__("shared_found").metrics',
    )
    (root / "demo/shared_found.py").write_text(FOUND)
    done = benchmark_here("run", "--root", root, "--artifacts-dir", tmp_path / "run", "--iterations", "2", scratch=tmp_path)
    assert done.code == 0, done
    (row,) = json.loads((tmp_path / "run/metrics.json").read_text())["rows"]
    timing = row["timings"]["cpu"]
    losses = [unit["figures"]["baseline"] for unit in timing["units"]]
    assert len(set(losses)) == len(losses) > 1
    assert all(abs(unit["gains"]["optimized"] - 1.5) < 1e-9 for unit in timing["units"])
    figure = timing["figures"]["baseline"]
    assert figure["low"] < figure["high"]
