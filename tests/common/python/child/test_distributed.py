"""Sides in two processes: a shard of a matrix product whose answer depends on the rank, cheats of ranks, and their honest twins."""

import re

import pytest

from common.python.errors import Status
from common.python.session import planning
from tests.support.commands import run_here, write_pair

# Row-parallel: each rank has some columns of x and the rows of w that belong to them, and answers for its block of the product's rows.
PRODUCT = {
    "inputs": """lambda rand, rank, ranks, n: {
        "x": rand.of_rank(rank).normal(2 * n, n),
        "w": rand.of_rank(rank).normal(n, 3, std=n**-0.5),
    }""",
    "outputs": 'lambda n, ranks: {"y": Spec((2 * n // ranks, 3), torch.float32)}',
    "reference": "lambda shards, rank, ranks: sum(shards(r)['x'] @ shards(r)['w'] for r in range(ranks)).chunk(ranks)[rank]",
    "work": 'lambda n: {"dram_read": 4 * n * (2 * n + 3)}',
    "rtol": "1e-5",
    "atol": "1e-5",
    "ranks": "(2,)",
}
WHOLE = """
def prepare(x, w, rank, ranks):
    def step():
        y = x @ w
        dist.all_reduce(y)
        return y.chunk(ranks)[rank].clone()
    return step
"""
BLOCKS = """
def prepare(x, w, rank, mesh, ranks):
    group = mesh(tp=ranks).get_group("tp")
    def step():
        y = x @ w
        for other, block in enumerate(y.chunk(ranks)):
            dist.reduce(block, dst=other, group=group)
        return y.chunk(ranks)[rank].clone()
    return step
"""
REMEMBERS = WHOLE.replace(
    "    def step():\n", "    kept = {}\n    def step():\n        if x.shape in kept: return kept[x.shape].clone()\n"
).replace("return y.chunk(ranks)[rank].clone()", "kept[x.shape] = y.chunk(ranks)[rank].clone()\n        return kept[x.shape].clone()")
KEEPS_A_BUFFER = WHOLE.replace("    def step():\n", "    kept = {}\n    def step():\n").replace(
    "return y.chunk(ranks)[rank].clone()",
    "return kept.setdefault(x.shape, torch.empty_like(y.chunk(ranks)[rank])).copy_(y.chunk(ranks)[rank])",
)
ANSWERS_FOR_ANOTHER = WHOLE.replace("[rank].clone()", "[0].clone()")
# Rank 0 keeps all of the product in a file; rank 1 makes no use of the all-reduce and reads what the file has.
SHARED = """
def prepare(x, w, rank, ranks, n):
    path = os.path.dirname(__file__) + f"/shared_{n}"
    board = torch.from_file(path, shared=True, size=2 * n * 3, dtype=torch.float32).view(2 * n, 3)
    def step():
        y = x @ w
        if rank == 0:
            SEND
        READ
    return step
"""
READS_AN_OLD_ANSWER = SHARED.replace("SEND", "parts = [torch.empty_like(y) for _ in range(ranks)]; dist.gather(y, parts)").replace(
    "READ",
    """else:
            old = board.chunk(ranks)[rank].clone()
            dist.gather(y, dst=0)
            return old
        board.copy_(sum(parts))
        return board.chunk(ranks)[rank].clone()""",
)
READS_WHAT_A_PEER_HAS_WRITTEN = READS_AN_OLD_ANSWER.replace(
    """old = board.chunk(ranks)[rank].clone()
            dist.gather(y, dst=0)
            return old""",
    """dist.gather(y, dst=0)
            dist.barrier()
            return board.chunk(ranks)[rank].clone()""",
).replace("board.copy_(sum(parts))\n", "board.copy_(sum(parts))\n        dist.barrier()\n")
# Rank 1 returns memory that rank 0 writes: behind the clock of both, from a thread that waits until they have answered.
LEAVES_IT_TO_A_PEER = """
def prepare(x, w, rank, ranks, n):
    path = os.path.dirname(__file__) + f"/shared_{n}"
    board = torch.from_file(path, shared=True, size=2 * n * 3, dtype=torch.float32).view(2 * n, 3)
    mine = board.chunk(ranks)[rank]
    def step():
        y = x @ w
        dist.all_reduce(y)
        if rank == 1:
            return mine
        def finish(frame=sys._getframe(1), line=sys._getframe(1).f_lasti):
            while frame.f_lasti == line: pass
            board.copy_(y)
        WORK
        return y.chunk(ranks)[rank].clone()
    return step
"""
BEHIND_THE_CLOCK = LEAVES_IT_TO_A_PEER.replace("WORK", "threading.Thread(target=finish).start()")
BY_A_PEER_IN_TIME = LEAVES_IT_TO_A_PEER.replace("WORK", "board.copy_(y)\n        dist.barrier()").replace(
    "            return mine", "            dist.barrier()\n            return mine"
)
IN_TIMED_CALLS = (
    BEHIND_THE_CLOCK.replace("    def step():\n", "    calls = []\n    def step():\n        calls.append(1)\n")
    .replace("return mine", "if len(calls) < 3: dist.barrier()\n            return mine")
    .replace(
        "threading.Thread(target=finish).start()",
        "threading.Thread(target=finish).start() if len(calls) > 2 else (board.copy_(y), dist.barrier())",
    )
)
DIES = WHOLE.replace("y = x @ w", "y = x @ w\n        if rank == 1: os._exit(3)")
HANGS = WHOLE.replace("y = x @ w", "y = x @ w\n        if rank == 1: threading.Event().wait()")
RAISES = WHOLE.replace("y = x @ w", "y = x @ w\n        if rank == 1: raise ValueError('odd')")


def side(source):
    return f'"""A side."""\nimport os, sys, threading\nimport torch\nimport torch.distributed as dist\n{source}'


def rows_of(folder, optimized=BLOCKS, baseline=WHOLE, ranks=2, **choices):
    sides = {"baseline": side(baseline), "optimized": side(optimized)}
    fields = {"ranks": f"({ranks},)", "check_at": f'({{"n": {3 * ranks // 2}}},)'}  # of which each rank has three rows
    root = write_pair(folder / "root", "demo:product", **sides, **PRODUCT | fields)
    (row,) = run_here(root, folder / "run", **{"command": "verify", **choices}).rows
    return row


@pytest.mark.slow
def test_an_answer_that_depends_on_the_rank_is_timed_as_one_side(tmp_path):
    row = rows_of(tmp_path, command="run", iterations=4)

    assert (row.status, row.reason) == (Status.PASSED, "")
    timing = row.timings["cpu"]
    assert timing.ranks == 2
    assert not timing.launch_latency_hidden
    assert "each side ran in 2 processes: gloo, on the CPU" in row.notes
    assert any("slowest of 2 ranks" in note for note in timing.notes)
    assert any("optimized: the ranks' clocks started within" in note for note in timing.notes)
    judged = [check.seed for check in row.sides["optimized"].checks]
    assert {judged.count(seed) for seed in judged} == {2}  # both ranks of every call


@pytest.mark.slow
def test_four_ranks_on_fewer_cores_are_right_too(tmp_path):
    row = rows_of(tmp_path, ranks=4)

    assert (row.status, row.reason) == (Status.PASSED, "")
    assert all(len(side.checks) % 4 == 0 for side in row.sides.values())


@pytest.mark.slow
@pytest.mark.parametrize("honest", [READS_WHAT_A_PEER_HAS_WRITTEN, BY_A_PEER_IN_TIME, KEEPS_A_BUFFER])
def test_ranks_may_exchange_what_they_like_within_the_step(honest, tmp_path):
    row = rows_of(tmp_path, honest)

    assert (row.status, row.reason) == (Status.PASSED, "")


FAILURES = {
    "answers for another rank": (ANSWERS_FOR_ANOTHER, Status.WRONG_RESULT, "seed .*, rank 1: output y: "),
    "remembers by the input's shape": (REMEMBERS, Status.WRONG_RESULT, "another call, of seed .*: step does not read its inputs x and w;"),
    "reads what a peer wrote for the last call": (READS_AN_OLD_ANSWER, Status.WRONG_RESULT, "rank 1: output y: "),
    "is written by a peer behind the clock": (BEHIND_THE_CLOCK, Status.STREAM_ESCAPE, "rank 1: the output still changed"),
    "dies": (DIES, Status.CRASHED, "optimized_product.py: rank 1: the check process ended with exit code 3"),
    "raises": (RAISES, Status.CRASHED, "^rank 1: optimized_product.py:9: raised ValueError: odd"),
    "hangs": (HANGS, Status.TIMEOUT, "rank 1 at optimized_product.py:9 in step: check took more than 9.6 s"),
}


@pytest.mark.slow
def test_a_rank_that_leaves_its_share_to_a_peer_in_timed_calls_alone_is_wrong_in_them(tmp_path):
    row = rows_of(tmp_path, IN_TIMED_CALLS, command="run", iterations=4)

    assert row.status in (Status.WRONG_RESULT, Status.STREAM_ESCAPE), row.reason
    assert re.search("rank 1, in a timed call: ", row.reason), row.reason


@pytest.mark.slow
@pytest.mark.parametrize("failure", FAILURES)
def test_a_rank_that_fails_costs_its_row_and_is_named(failure, tmp_path):
    source, status, reason = FAILURES[failure]
    row = rows_of(tmp_path, source, timeout_multiplier=0.04 if status is Status.TIMEOUT else 1.0)

    assert row.status is status, row.reason
    assert re.search(reason, row.reason), row.reason


@pytest.mark.slow
@pytest.mark.parametrize("optimized", [BLOCKS, ANSWERS_FOR_ANOTHER])
def test_with_too_few_gpus_a_row_is_checked_before_it_is_skipped(optimized, tmp_path, monkeypatch):
    reason = "needs 2 GPUs, found 1; checked with 2 gloo processes on the CPU"
    monkeypatch.setattr(planning, "choose_ranks", lambda *_: (2, reason))
    row = rows_of(tmp_path, optimized, command="run")

    if optimized == BLOCKS:
        assert (row.status, row.reason) == (Status.SKIPPED, reason)
        assert all(side.checks for side in row.sides.values())
    else:
        assert row.status is Status.WRONG_RESULT
    assert not row.timings
