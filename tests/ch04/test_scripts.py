"""The scripts, as torchrun starts them with gloo: their answers are right, and layouts of the same batches train alike."""

import json
import os
import re
import subprocess
import sys

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
suite = import_file(CHAPTER / "bandwidth_benchmark_suite_8gpu.py")
TINY = ("--steps=12", "--layers=1", "--width=64", "--batch=4", "--context=32", "--bound=5.5", "--corpus=common/models")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def started(ranks, script, *arguments, status=0):
    """What the script prints in so many processes."""
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(CHAPTER / script), *arguments]
    environment = os.environ | {"PYTHONPATH": str(PROJECT_ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == status, done.stderr[-3000:]
    return done.stdout + done.stderr


def losses_of(out):
    return re.search(r"loss (\S+) at step 1, as in one process; (\S+) over the last", out).groups()


@pytest.mark.parametrize(
    ("name", "ranks", "busbw"),
    [("all_reduce", 2, 1.0), ("all_reduce", 8, 1.75), ("all_gather", 2, 0.5), ("reduce_scatter", 8, 0.875), ("broadcast", 8, 1.0)],
)
def test_bandwidths_are_those_of_nccl_tests(name, ranks, busbw):
    found = suite.figures(name, ranks, size=10**9, seconds=1.0)
    assert (found["algbw"], found["busbw"], found["us"]) == (1.0, busbw, 1e6)


@pytest.mark.parametrize("ranks", [2, 4])
def test_bandwidth_suite(ranks, tmp_path):
    out = started(
        ranks, "bandwidth_benchmark_suite_8gpu.py", "--full", "--calls=1", "--max-bytes=16384", f"--json={tmp_path / 'rows.json'}"
    )
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["ranks"] == ranks
    assert [(row["collective"], row["bytes"]) for row in found["rows"]] == [
        (name, size) for name in suite.FACTORS for size in (4096, 16384)
    ]
    assert not any(row["wrong"] for row in found["rows"])
    assert out.count("right") == len(found["rows"])


def test_bandwidth_suite_alone_is_refused():
    assert "found 1 rank; expected at least 2" in started(1, "bandwidth_benchmark_suite_8gpu.py", status=1)


def test_async_tp_demo():
    out = started(2, "torchtitan_async_tp_demo.py", "--calls=1")
    assert "off by at most 0.0" in out
    assert "overlapped: not run, as symmetric memory needs a GPU for each rank" in out


def test_tensor_parallelism_trains_as_one_process():
    alone, shared = (started(ranks, "training_8xb200_pipeline.py", f"--tp-size={ranks}", *TINY) for ranks in (1, 2))
    assert losses_of(alone) == losses_of(shared)


def test_nodes_train_as_one_node():
    node = started(2, "training_8xb200_pipeline.py", "--tp-size=1", *TINY)
    nodes = started(4, "multi_node_blackwell.py", "--virtual-nodes=2", "--tp-size=2", *TINY)
    assert losses_of(node) == losses_of(nodes)


def test_a_tp_size_that_does_not_fit_is_refused():
    out = started(2, "training_8xb200_pipeline.py", "--tp-size=4", *TINY, status=1)
    assert "--tp-size: found 4; expected a divisor of the 2 ranks and of the model's 2 heads" in out


def test_a_loss_that_does_not_fall_is_an_error():
    started(1, "training_8xb200_pipeline.py", *TINY[:-2], "--bound=0.1", TINY[-1], status=1)


def test_presets_are_measured():
    out = started(2, "nccl_blackwell_config.py")
    assert len(re.findall(r"bytes: defaults \S+ us: defaults", out)) == 5
