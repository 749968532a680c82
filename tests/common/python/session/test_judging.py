"""Which of several things that are wrong with a call is its status, and who is asked about which call."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.processes import messages
from common.python.session.session import Judging
from tests.support.plans import SHAPE, a_plan

DIGEST = "of the seed"


class Referee:
    """A child that says of every call what a test would have it say; `log` is told what it is asked and what it answers."""

    def __init__(self, mismatch, log=None):
        self.mismatch = mismatch
        self.log = [] if log is None else log

    def begin(self, request):
        if isinstance(request, messages.Judge):
            self.log.append(("asked", request.rank, request.seed, self))

    def finish(self, request, expected, seconds, limit_s):
        if isinstance(request, messages.Attend):
            return messages.Ready(nonce="")
        self.log.append(("heard", request.rank, request.seed, self))
        if self.mismatch == "dies" and request.rank == 0:
            raise SideFailure(Status.CRASHED, "the judge process was killed")
        return messages.Judged(nonce="", digest=DIGEST, outputs={}, mismatch=self.mismatch)

    def kill(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def status(tmp_path):
    def of(call, *, timed, mismatch=""):
        server = SimpleNamespace(fork=lambda role, log: Referee(mismatch))
        session = SimpleNamespace(server=server, logs=lambda target, side: tmp_path, limit_s=lambda step: 1.0, inputs_folder=Path())
        with Judging(session, a_plan(tmp_path)) as judging:
            if not (mismatch or call.escaped or call.modified or call.digest != DIGEST):
                return judging.judge("optimized", SHAPE, 1, [call], timed=timed)[0].timed_call
            with pytest.raises(SideFailure, match=r"optimized_transpose\.py at n=1024") as failure:
                judging.judge("optimized", SHAPE, 1, [call], timed=timed)
        assert ("in a timed call" in failure.value.reason) is timed
        return failure.value.status

    return of


def a_call(**changes):
    return messages.Call(**{"seed": 1, "digest": DIGEST, "modified": [], "escaped": "", "outputs": []} | changes)


@pytest.mark.parametrize("timed", [False, True])
def test_each_has_its_status(status, timed):
    assert status(a_call(), timed=timed) is timed
    assert status(a_call(), timed=timed, mismatch="y: 3 of 3") is Status.WRONG_RESULT
    assert status(a_call(escaped="late"), timed=timed) is Status.STREAM_ESCAPE
    assert status(a_call(modified=["x"]), timed=timed, mismatch="y: 3 of 3") is Status.INPUT_MODIFIED
    assert status(a_call(digest="of another"), timed=timed, mismatch="y: 3 of 3") is Status.INPUT_MODIFIED


def test_an_answer_that_still_changes_has_escaped_whatever_it_was_by_then(status):
    for timed in (False, True):
        assert status(a_call(escaped="late"), timed=timed, mismatch="y: 3 of 3") is Status.STREAM_ESCAPE


def test_an_old_answer_in_a_timed_call_is_wrong_and_has_not_escaped(status):
    early = a_call(escaped="early")
    assert status(early, timed=True) is Status.STREAM_ESCAPE
    assert status(early, timed=True, mismatch="y: 3 of 3") is Status.WRONG_RESULT


CALLS = [a_call(rank=rank, ranks=2, seed=seed) for rank in (0, 1) for seed in (5, 6)]


def judged(tmp_path, mismatch=""):
    """What is said of four calls of two ranks, and in which order the referees were asked and heard."""
    log = []
    server = SimpleNamespace(fork=lambda role, path: Referee(mismatch, log))
    session = SimpleNamespace(server=server, logs=lambda target, side: tmp_path, limit_s=lambda step: 1.0, inputs_folder=Path())
    with Judging(session, a_plan(tmp_path, ranks=2)) as judging:
        try:
            return judging.judge("optimized", SHAPE, 1, CALLS, timed=True), log
        except SideFailure as failure:
            return failure, log


def test_ranks_have_a_referee_each_and_are_judged_side_by_side(tmp_path):
    checks, log = judged(tmp_path)

    assert [check.seed for check in checks] == [5, 6, 5, 6]  # in the order of the calls
    assert [entry[:3] for entry in log] == [(what, rank, seed) for seed in (5, 6) for what in ("asked", "heard") for rank in (0, 1)]
    referees = {rank: {id(entry[3]) for entry in log if entry[1] == rank} for rank in (0, 1)}
    assert [len(found) for found in referees.values()] == [1, 1]
    assert referees[0] != referees[1]


def test_a_referee_that_fails_leaves_no_answer_of_another_unheard(tmp_path):
    failure, log = judged(tmp_path, mismatch="dies")

    assert failure.status is Status.CRASHED
    assert [entry[:2] for entry in log] == [("asked", 0), ("asked", 1), ("heard", 0), ("heard", 1)]


def test_the_first_rank_that_is_wrong_is_named(tmp_path):
    failure, _ = judged(tmp_path, mismatch="y: 3 of 3")

    assert failure.status is Status.WRONG_RESULT
    assert "seed 5, rank 0, in a timed call: y: 3 of 3" in failure.reason
