"""Sides in two processes with NCCL, a GPU each: an honest one, one that does not wait for its collective, and ranks that end or hang."""

import json
import re

import pytest

from common.python.errors import Status
from common.python.results import PairResult
from tests.common.python.child.test_distributed import BLOCKS, DIES, HANGS, PRODUCT, WHOLE, side
from tests.conftest import gpus
from tests.support.commands import benchmark, write_pair

pytestmark = [pytest.mark.gpu, pytest.mark.unused_gpu, pytest.mark.slow, pytest.mark.timeout(600)]
of_two_gpus = pytest.mark.skipif(gpus() < 2, reason="needs two GPUs")

# 16 MiB and 64 MiB: an all-reduce of them takes the GPUs longer than the host takes to ask for a copy of its result.
SUM = {
    "inputs": 'lambda rand, rank, n: {"x": rand.of_rank(rank).normal(n)}',
    "reference": "lambda shards, ranks: sum(shards(r)['x'] for r in range(ranks))",
    "time_at": '{"n": 1 << 24}',
    "check_at": '({"n": 1 << 22},)',
    "cpu_at": "None",
    "rtol": "1e-6",
    "atol": "1e-6",
    "ranks": "(2,)",
}
WAITS = """
def prepare(x):
    y = torch.empty_like(x)
    def step():
        y.copy_(x)
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        return y
    return step
"""
WAITS_ON_ONE_HOST = WAITS.replace("return y", "if dist.get_rank() == 1: torch.cuda.synchronize()\n        return y")
DOES_NOT_WAIT = WAITS.replace("work.wait()", "pass")


def row_of(folder, command, target, sides, fields, *flags):
    baseline, optimized = map(side, sides)
    root = write_pair(folder / "root", target, baseline=baseline, optimized=optimized, **fields)
    done = benchmark(command, "--root", root, "--device", "cuda", "--json", *flags, scratch=folder)
    assert done.stdout, done.stderr
    (row,) = json.loads(done.stdout)["rows"]
    return PairResult.model_validate(row)


@of_two_gpus
def test_two_ranks_are_timed_on_two_gpus(tmp_path):
    row = row_of(tmp_path, "run", "demo:product", (WHOLE, BLOCKS), PRODUCT, "--iterations", "4")

    assert (row.status, row.reason) == (Status.PASSED, "")
    (timing,) = row.timings.values()
    assert (timing.ranks, timing.device, timing.launch_latency_hidden) == (2, "cuda", True)
    assert "each side ran in 2 processes: NCCL, a GPU each" in row.notes
    assert any("until the last rank has queued its calls" in note for note in timing.notes)


@of_two_gpus
def test_ranks_whose_step_waits_for_its_gpu_are_timed_without_a_hold(tmp_path):
    row = row_of(tmp_path, "run", "demo:sum", (WAITS, WAITS_ON_ONE_HOST), SUM, "--iterations", "4")

    assert (row.status, row.reason) == (Status.PASSED, "")
    (timing,) = row.timings.values()
    assert not timing.launch_latency_hidden
    assert any("the streams are not held" in note for note in timing.notes)


@of_two_gpus
@pytest.mark.parametrize("optimized", [WAITS, DOES_NOT_WAIT])
def test_a_collective_that_nobody_waits_for_is_not_done(optimized, tmp_path):
    row = row_of(tmp_path, "verify", "demo:sum", (WAITS, optimized), SUM)

    expected = (Status.PASSED,) if optimized == WAITS else (Status.STREAM_ESCAPE, Status.WRONG_RESULT)
    assert row.status in expected, row.reason


@of_two_gpus
@pytest.mark.parametrize(
    ("optimized", "status", "reason", "multiplier"),
    [
        (DIES, Status.CRASHED, "rank 1: the check process ended with exit code 3", 1.0),
        (HANGS, Status.TIMEOUT, "rank 1 at optimized_product.py:9 in step", 0.1),  # 24 s: all of them pass before a hang is told
    ],
)
def test_a_rank_that_ends_or_hangs_is_named(optimized, status, reason, multiplier, tmp_path):
    row = row_of(tmp_path, "verify", "demo:product", (WHOLE, optimized), PRODUCT, "--timeout-multiplier", str(multiplier))

    assert row.status is status, row.reason
    assert re.search(reason, row.reason), row.reason


def test_on_one_gpu_a_pair_of_two_ranks_is_checked_on_the_cpu_and_skipped(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    row = row_of(tmp_path, "run", "demo:product", (WHOLE, BLOCKS), PRODUCT)

    assert (row.status, row.reason) == (Status.SKIPPED, "needs 2 GPUs, found 1; checked with 2 gloo processes on the CPU")
    assert all(each.checks for each in row.sides.values())
