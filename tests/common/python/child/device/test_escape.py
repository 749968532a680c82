"""Looks at a held stream: how long it is held, what counts as there too early, and what a copy behind the step finds."""

import contextlib
from types import SimpleNamespace

import pytest
import torch

from common.python.child.device import escape
from common.python.child.device.escape import HeldCall, TimedLook
from common.python.child.distributed import Alone
from common.python.pairs.workload import Spec

SPECS = {"y": Spec((4,), torch.float32)}


class Device:
    """What is queued on the held stream is done when it is released; what is queued elsewhere, at once."""

    def __init__(self):
        self.queue, self.holds, self.held, self.aside, self.is_one_queue = [], [], True, False, False

    def launch(self, work):
        if self.held and (self.is_one_queue or not self.aside):
            self.queue.append(work)
        else:
            work()

    def copy_bits(self, to, tensor):
        self.launch(lambda: to.copy_(tensor))

    def release(self):
        self.held = False
        while self.queue:
            self.queue.pop(0)()

    def event(self):
        done = []
        return SimpleNamespace(record=lambda: self.launch(lambda: done.append(1)), query=lambda: bool(done))

    @contextlib.contextmanager
    def elsewhere(self, _stream=None):
        self.aside = True
        yield
        self.aside = False


@pytest.fixture
def device(monkeypatch):
    made = Device()
    helpers = SimpleNamespace(block=lambda ns, gate: made.holds.append(ns / 1e6), release=made.release, expired=False)
    monkeypatch.setattr(escape, "device_helpers", lambda: helpers)
    monkeypatch.setattr(escape, "copy_bits", made.copy_bits)
    monkeypatch.setattr(torch, "empty", lambda *shape, dtype, device: torch.full(*shape, 7, dtype=dtype))
    monkeypatch.setattr(escape, "stream_past_the_hold", lambda: "another")
    monkeypatch.setattr(torch.cuda, "Event", made.event)
    monkeypatch.setattr(torch.cuda, "stream", made.elsewhere)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return made


@pytest.mark.parametrize(("call_s", "ms"), [(1e-4, 200), (0.05, 500), (0.2, 1000), (3.0, 1000)])
def test_a_stream_is_held_for_ten_calls(device, call_s, ms):
    HeldCall(lambda: torch.ones(4), lambda returned: {"y": returned}, SPECS, {}, call_s, Alone())
    assert device.holds == [pytest.approx(ms)]


def test_the_streams_of_ranks_are_held_until_all_have_queued_the_step_and_the_copy_behind_it(device):
    y, said = torch.zeros(4), []
    gate = SimpleNamespace(open=lambda: said.append("open"))
    together = SimpleNamespace(gate=gate, meet=lambda: said.append(len(device.queue)))

    HeldCall(lambda: device.launch(lambda: y.fill_(3)) or y, lambda returned: {"y": returned}, SPECS, {}, 1e-4, together)
    assert said == [2, "open"]  # the step and the copy: the other copy and its event went past the hold


def in_order(device, work):
    device.launch(work)


def past_the_hold(device, work):
    with device.elsewhere():
        device.launch(work)


def behind_all_else(device, work):
    """On a stream that waits for the held one, and that nothing waits for."""
    device.launch(lambda: device.queue.append(work))


def looked_at(
    device, way, *, before=(1.0, 2.0, 3.0, 4.0), answer=(5.0, 6.0, 7.0, 8.0), dtype=torch.float32, kept=(), held=True, known=True
):
    """A look at a call that answers in its own memory, where its answer to another seed lies."""
    before, answer = torch.tensor(before, dtype=dtype), torch.tensor(answer, dtype=dtype)
    y = before.clone()
    look = TimedLook({"y": Spec(tuple(y.shape), dtype)}, kept)
    device.held = False
    look.remember({"y": y} if known else {})
    device.held = held
    way(device, lambda: y.copy_(answer))
    look.take({"y": y}, held=held)
    device.release()
    return look, answer


def test_work_on_its_stream_is_found_behind_it_and_not_before(device):
    look, answer = looked_at(device, in_order)
    assert torch.equal(look.behind["y"], answer)
    assert look.escaped() == []
    assert not look.changed({"y": answer})


def test_an_answer_that_is_there_before_its_stream_went_on_has_escaped(device):
    look, answer = looked_at(device, past_the_hold)
    assert torch.equal(look.behind["y"], answer)
    assert look.escaped() == ["y"]


def test_what_is_done_behind_a_step_that_does_not_wait_for_it_does_not_count(device):
    look, answer = looked_at(device, behind_all_else)
    assert not torch.equal(look.behind["y"], answer)
    assert look.escaped() == []
    assert look.changed({"y": answer})


def test_a_look_that_stands_in_the_held_queue_tells_nothing_and_does_not_wait(device, monkeypatch):
    monkeypatch.setattr(escape, "_LOOK_WITHIN_S", 0.01)
    device.is_one_queue = True
    look, answer = looked_at(device, in_order)
    assert torch.equal(look.behind["y"], answer)
    assert look.escaped() == []
    device.held, y = True, torch.zeros(4)
    held = HeldCall(lambda: device.launch(lambda: y.fill_(3)) or y, lambda returned: {"y": returned}, SPECS, {}, 1e-4, Alone())
    assert torch.equal(held.behind["y"], y)
    assert held.escaped == []


@pytest.mark.parametrize(
    "honest",
    [
        {"answer": (1.0, 2.0, 3.0, 4.0)},  # the same for every seed
        {"before": (3,), "answer": (4,), "dtype": torch.int64},  # so small a number may be the same again
        {"kept": ("y",)},  # a state, which a step may leave as it is
        {"held": False},
        {"known": False},  # the first call of all
    ],
    ids=str,
)
def test_nothing_is_said_of_an_answer_that_may_be_there_by_chance(device, honest):
    look, _ = looked_at(device, past_the_hold, **honest)
    assert look.escaped() == []


def test_one_float_is_enough_to_tell(device):
    look, _ = looked_at(device, past_the_hold, before=(0.123456,), answer=(0.654321,))
    assert look.escaped() == ["y"]
