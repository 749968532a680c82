"""The line between a client and a side, both ends in one process: what is read behind a flag is what counts."""

import threading

import pytest
import torch

from common import Metric, Request
from common.python.child.serving.client import _Replay
from common.python.child.serving.line import Line
from common.python.child.serving.ring import Ring, Sizes
from common.python.errors import SideFailure, Status
from common.python.pairs.traces import Planned

VOCABULARY = 10
TRACE = (Planned(0.0, (1, 2, 3), 2), Planned(0.05, (4, 5), 1))
ROW = torch.arange(float(VOCABULARY))[None]


class Session:
    """A replay in a thread, and a line on which a step is run."""

    def __init__(self, folder):
        self.path = folder / "ring"
        self.ring = Ring.create(self.path, Sizes.of(TRACE, 3))
        self.ring.arrays["columns"][:] = [0, 4, 9]
        self.replay = _Replay(self.ring, TRACE, most_tokens=7)
        self.line = Line(VOCABULARY, torch.device("cpu"), "optimized_x.py")
        self.problem = None

    def run(self, step):
        """The client's sentence, after the side has run its step."""
        client = threading.Thread(target=self._play)
        client.start()
        try:
            self.line.run(step, self.path)
        finally:
            client.join()
        return self.problem

    def _play(self):
        self.problem = self.replay.run(20.0, 1e-4)


@pytest.fixture
def session(tmp_path):
    return Session(tmp_path)


def test_requests_come_when_they_are_due_and_tokens_are_stamped(session):
    seen = []

    def step():
        (first,) = session.line.wait()
        seen.append(first)
        assert session.line.poll() == []
        assert session.line.emit([first], torch.tensor([8]), ROW) == set()
        assert session.line.emit([first], [7], ROW + 1) == {0}
        (second,) = session.line.wait()
        seen.append(second)
        assert session.line.emit([second], torch.tensor([3]), ROW + 2) == {1}
        assert session.line.wait() == []
        session.line.report("batch", Metric(1.0, "requests", "higher"))

    assert session.run(step) == ""
    assert seen == [Request(0, [1, 2, 3], 7), Request(1, [4, 5], 7)]  # of an answer's length its bound alone is told
    first, second = session.replay.requests()
    assert (first.due_us, second.due_us) == (0, 50_000)
    assert second.tokens_us[0] >= 50_000
    assert first.tokens_us[0] <= first.tokens_us[1] < 50_000
    answer = session.replay.answer_of(0)
    assert (answer.tokens, answer.columns) == ([8, 7], [0, 4, 9])
    assert answer.probed == [[0.0, 4.0, 9.0], [1.0, 5.0, 10.0]]
    assert session.line.reported["batch"].value == 1.0


def test_several_tokens_of_a_request_may_come_in_one_call(session):
    def step():
        (first,) = session.line.wait()
        session.line.emit([first, first], [5, 6], torch.cat([ROW, ROW]))
        session.line.emit(session.line.wait(), [1], ROW)

    assert session.run(step) == ""
    assert session.replay.answer_of(0).tokens == [5, 6]


def test_a_request_without_all_its_tokens_is_told(session):
    assert session.run(lambda: session.line.emit(session.line.wait(), [5], ROW)) == (
        "request 0 got 1 tokens by the end of the step; expected 2"
    )


def test_what_is_written_behind_a_stamp_is_of_no_use(session):
    def step():
        (first,) = session.line.wait()
        session.line.emit([first], [5], ROW)
        while not session.replay._stamps[0]:
            pass
        session.ring.arrays["tokens"][0] = 9
        session.line.emit([first], [6], ROW)
        session.line.emit(session.line.wait(), [1], ROW)

    assert session.run(step) == ""
    assert session.replay.answer_of(0).tokens == [5, 6]


WRONG = {
    "a request to come": (lambda first: ([Request(1, [4, 5], 1)], [5], ROW), "a token of request 1 before poll or wait gave it"),
    "a request that never is": (lambda first: ([Request(-1, [], 1)], [5], ROW), "a token of request -1 before poll or wait gave it"),
    "one too many": (lambda first: ([first] * 3, [5] * 3, torch.cat([ROW] * 3)), "emitted token 3 of request 0; expected 2"),
    "no logits for a token": (lambda first: ([first], [5], ROW[:, :4]), "expected a token and a row of 10 logits for each request"),
    "more tokens than requests": (lambda first: ([first], [5, 6], ROW), "emit got 1 requests, 2 tokens and logits"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_emit_refuses_fails_the_step_even_if_the_side_hides_it(wrong, session):
    arguments, message = WRONG[wrong]

    def step():
        (first,) = session.line.wait()
        with pytest.raises(SideFailure):
            session.line.emit(*arguments(first))

    with pytest.raises(SideFailure) as raised:
        session.run(step)
    assert raised.value.status is Status.WRONG_RESULT
    assert message in raised.value.reason
    assert raised.value.reason.startswith("optimized_x.py: ")


def test_tokens_put_into_the_memory_before_a_request_is_sent_are_told(session):
    def step():
        session.line.wait()
        session.ring.arrays["owners"][0] = 1
        session.ring.arrays["flags"][0] = 1
        session.ring.put("reserved", 1)

    assert "found a token of request 1 before it was sent" in session.run(step)


def test_there_is_no_line_outside_of_a_step(session):
    with pytest.raises(SideFailure, match="used arrivals or emit outside of a step"):
        session.line.poll()


def test_a_step_that_raises_ends_the_trace(session):
    def step():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        session.run(step)
    assert session.problem == "request 0 got 0 tokens by the end of the step; expected 2"
