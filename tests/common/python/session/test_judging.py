"""Which of several things that are wrong with a call is its status."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.processes import messages
from common.python.session.session import Judging
from tests.support.plans import SHAPE, a_plan

DIGEST = "of the seed"


class Referee:
    """A child that says of every call what a test would have it say."""

    def __init__(self, mismatch):
        self.mismatch = mismatch

    def begin(self, request):
        pass

    def finish(self, request, expected, seconds):
        return messages.Ready(nonce="")

    def ask(self, request, expected, seconds):
        return messages.Judged(nonce="", digest=DIGEST, outputs={}, mismatch=self.mismatch)

    def kill(self):
        pass

    def __exit__(self, *_):
        pass


@pytest.fixture
def status(tmp_path):
    def of(call, *, timed, mismatch=""):
        server = SimpleNamespace(fork=lambda role, log: Referee(mismatch))
        session = SimpleNamespace(server=server, logs=lambda target, side: tmp_path, limit_s=lambda step: 1.0, inputs_folder=Path())
        with Judging(session, a_plan(tmp_path)) as judging:
            if not (mismatch or call.escaped or call.modified or call.digest != DIGEST):
                return judging.judge("optimized", SHAPE, 1, call, timed=timed).timed_call
            with pytest.raises(SideFailure, match=r"optimized_transpose\.py at n=1024") as failure:
                judging.judge("optimized", SHAPE, 1, call, timed=timed)
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
