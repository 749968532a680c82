"""A side in two processes: each gets its shard, each is judged, the slower one is the time, and the first to fail fails the side."""

import socket
import time

import pytest

from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.measure.process_pairs import Measurement
from common.python.pairs.discovery import discover
from common.python.pairs.targets import select
from common.python.processes import messages
from common.python.processes.ranks import RankGroup, joined
from common.python.report.run_folder import RunFolder
from common.python.results import CompilerFinding
from common.python.session.planning import make_plans
from common.python.session.session import Judging, Session
from common.python.settings import Settings
from tests.support.commands import write_pair
from tests.support.plans import WITHOUT_GPU, standards_for

# Rank r of n holds every n-th of the vector's elements, so that each finds its own part.
SHARDED = {
    "inputs": 'lambda rand, rank, ranks, n: {"x": rand.normal(n * ranks)[rank::ranks].clone(), "who": [rank, ranks]}',
    "ranks": "(2,)",
}
HONEST = '"""A side."""\n\n\ndef prepare(x, who):\n    return lambda: x * 2\n'
ONE_WRONG = '"""A side."""\n\n\ndef prepare(x, who):\n    return lambda: x * (2 + (who == [1, 2]))\n'
ONE_SLOW = '"""A side."""\nimport time\n\n\ndef prepare(x, who):\n    return lambda: (time.sleep(0.02 * (who[0] == 1)), x * 2)[1]\n'
ONE_DIES = """\"\"\"A side.\"\"\"
import os
import time


def prepare(x, who):
    return lambda: os._exit(3) if who[0] == 1 else time.sleep(60)
"""

ONE_HANGS = """\"\"\"A side.\"\"\"
import threading
import torch.distributed as dist

def prepare(x, who):
    def step():
        if who[0] == 1: threading.Event().wait()
        y = x * 2
        dist.all_reduce(y)
        return y
    return step
"""


@pytest.fixture
def row(server, tmp_path):
    """The plan of a pair whose optimized side is of the given source, and a session on which each side runs in two processes."""
    opened = []

    def made(optimized):
        root = write_pair(tmp_path / "root", baseline=HONEST, optimized=optimized, **SHARDED)
        settings = Settings(root=root, iterations=4, warmup=1)
        (plan,) = make_plans(select(discover(root), ()).selections, settings, WITHOUT_GPU, server, tmp_path / "logs")
        folder = RunFolder.create(settings, "run", tmp_path)
        session = Session(settings, server, 1, folder.path, folder.log_path)
        opened.append(session.__enter__())
        return plan, session

    yield made
    for session in opened:
        session.__exit__(None, None, None)


def checks(plan, session, seconds=30.0):
    """Two calls of each rank of the optimized side, and what the referee says of them."""
    with Judging(session, plan) as judging, session.start_side(plan, "optimized") as worker:
        worker.prepare({"n": 3}, 1, 2)
        checked = worker.ask(messages.Check(seeds=[2, 5], prefix=session.dump_prefix()), messages.Checked, seconds)
        return checked, judging.judge("optimized", {"n": 3}, 1, checked.calls, timed=False)


def test_every_rank_has_a_shard_of_its_own_and_is_judged_on_it(row):
    checked, judged = checks(*row(HONEST))

    assert [(call.rank, call.ranks, call.seed) for call in checked.calls] == [(0, 2, 2), (0, 2, 5), (1, 2, 2), (1, 2, 5)]
    assert len({call.digest for call in checked.calls}) == 4  # two seeds, two shards
    assert [check.outputs["y"].max_abs for check in judged] == [0.0] * 4


def test_one_rank_that_is_wrong_is_the_sides_failure_and_is_named(row):
    with pytest.raises(SideFailure) as failed:
        checks(*row(ONE_WRONG))

    assert failed.value.status is Status.WRONG_RESULT
    assert "rank 1: output y: 3 of 3 elements" in failed.value.reason


@pytest.mark.slow
def test_the_slower_rank_is_the_sides_time(row):
    plan, session = row(ONE_SLOW)
    with Judging(session, plan) as judging:
        found = Measurement(session, plan, "cpu", standards_for(plan, machine=WITHOUT_GPU), judging).run()

    assert found.timing.time_ns["optimized"].estimate >= 2e7
    assert found.timing.time_ns["baseline"].estimate < 1e7
    judged = [check.seed for check in found.checks["optimized"]]
    assert set(map(judged.count, judged)) == {2}  # of each call that is judged, both ranks
    assert len(set(judged)) >= len(found.timing.units)  # and of each unit one


def test_the_rank_that_died_says_why_and_the_one_that_waits_for_it_is_not_waited_for(row):
    plan, session = row(ONE_DIES)
    begin = time.monotonic()
    with pytest.raises(SideFailure) as failed:
        checks(plan, session)

    assert failed.value.status is Status.CRASHED
    assert "optimized_double.py: rank 1: the check process ended with exit code 3 before it answered" in failed.value.reason
    assert time.monotonic() - begin < 20


def test_a_rank_that_is_silent_is_a_timeout_of_the_whole_limit(row):
    with pytest.raises(SideFailure) as failed:
        checks(*row(ONE_HANGS), seconds=0.5)

    assert failed.value.status is Status.TIMEOUT
    assert "optimized_double.py:7 in step: check took more than 0.5 s" in failed.value.reason
    assert failed.value.reason.startswith("rank 1 at ")  # rank 0 waits for it in the all-reduce


class Answering:
    """A child whose answer is there when its end of a socket can be read; `log` is told what it is asked and when it is held."""

    def __init__(self, name, log):
        self.name, self.log = name, log
        self.ours, self.theirs = socket.socketpair()

    def fileno(self):
        return self.ours.fileno()

    def resume(self):
        self.log.append(f"{self.name} goes on")

    def hear(self, request, expected, seconds, limit_s):
        self.log.append(f"{self.name} is heard")
        return messages.Ready(nonce=request.nonce)

    def hold_still(self):
        self.log.append(f"{self.name} is held")


def test_no_rank_is_held_still_before_all_have_answered():
    log = []
    ranks = [Answering("0", log), Answering("1", log)]
    ranks[1].theirs.send(b"!")  # rank 1 is first
    original = ranks[1].hear

    def then_the_other(*arguments, **limits):
        ranks[0].theirs.send(b"!")
        return original(*arguments, **limits)

    ranks[1].hear = then_the_other
    RankGroup(ranks).finish(messages.Open(choose=False), messages.Ready, 5.0)
    for rank in ranks:
        rank.ours.close(), rank.theirs.close()

    assert log == ["0 goes on", "1 goes on", "1 is heard", "0 is heard", "0 is held", "1 is held"]


class Ending:
    """A child that keeps what it was told at its end, and that may say something was wrong."""

    def __init__(self, failure=None):
        self.failure, self.told = failure, []

    def begin_close(self):
        self.told.append("close")

    def __exit__(self, kind, error, trace):
        self.told.append(kind)
        if self.failure:
            raise self.failure


def test_every_rank_ends_and_knows_of_ctrl_c_whatever_another_says():
    ranks = [Ending(), Ending(SideFailure(Status.CRASHED, "something wrote on the socket")), Ending()]
    with pytest.raises(SideFailure, match="something wrote"):
        RankGroup(ranks).__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert [rank.told for rank in ranks] == [["close", KeyboardInterrupt]] * 3  # they leave each other together


def test_what_several_ranks_say_becomes_one_answer():
    fields = {"samples_ns": [1.0, 5.0], "sm_clock_hz": [1e9], "queued_ns": 3.0, "void": 0, "notes": ["cold"], "began_ns": [10, 30]}
    timed = messages.Timed(nonce="a", picks=[], **fields)
    fields = {"samples_ns": [2.0, 4.0], "sm_clock_hz": [2e9], "queued_ns": 1.0, "void": 2, "notes": ["cold", "hot"], "began_ns": [13, 29]}
    other = timed.model_copy(update=fields)
    warmed = {"nonce": "a", "calls": 5, "step_ns": 1.0, "sample_ns": 9.0, "call_s": 0.5, "metrics": {}}

    found = joined([timed, other])
    assert (found.samples_ns, found.sm_clock_hz, found.queued_ns, found.void) == ([2.0, 5.0], [1e9, 2e9], 3.0, 2)
    assert found.notes == ["cold", "hot"]
    assert found.began_ns == [3, 1]  # apart
    ready = joined(
        [messages.Warmed(holds=True, peak_memory_bytes=3, **warmed), messages.Warmed(holds=False, peak_memory_bytes=4, **warmed)]
    )
    assert (ready.holds, ready.peak_memory_bytes) == (False, 7)
    with pytest.raises(ValueError, match="zip"):
        joined([timed, timed.model_copy(update={"samples_ns": [1.0]})])


def test_a_shape_entry_cannot_be_called_as_a_rank_is(server, tmp_path):
    fields = {"time_at": '{"rank": 64}', "cpu_at": "None", "check_at": '({"rank": 3},)'}
    root = write_pair(tmp_path, inputs='lambda rand, rank: {"x": rand.normal(rank)}', **fields)

    with pytest.raises(BenchmarkError, match="shape default has an entry 'rank'; expected another name"):
        make_plans(select(discover(root), ()).selections, Settings(root=root), WITHOUT_GPU, server, tmp_path / "logs")


def test_of_what_torch_compile_did_in_several_processes_the_most_of_each_kind_counts():
    broken, again = (CompilerFinding(kind=kind, count=2, first=kind) for kind in ("broken", "again"))
    more = CompilerFinding(kind="again", count=3, first="of rank 1")
    ranks = [messages.Ready(nonce="1", compiler=found) for found in ([broken, again], [more], [broken])]
    assert joined(ranks).compiler == [broken, more]
