"""Jobs are done side by side within the room that there is; one that fails holds up no other."""

from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.session import builds as module
from common.python.session.builds import room_for, side_by_side

NO = SideFailure(Status.BUILD_FAILED, "no")


class Job:
    """Says what is done to it."""

    def __init__(self, name, said, at=""):
        self.name, self.said, self.at = name, said, at

    def begin(self):
        self._do("begin")

    def finish(self):
        self._do("finish")

    def kill(self):
        self.said.append(f"kill {self.name}")

    def _do(self, what):
        self.said.append(f"{what} {self.name}")
        if self.at == what:
            raise KeyboardInterrupt if self.name == "ctrl-c" else NO


def test_no_more_are_at_work_than_there_is_room_for():
    said = []
    side_by_side([Job(name, said) for name in "abc"], 2, lambda job: said.append(f"finished {job.name}"))
    assert said == ["begin a", "begin b", "finish a", "finished a", "begin c", "finish b", "finished b", "finish c", "finished c"]


@pytest.mark.parametrize("at", ["begin", "finish"])
def test_one_that_fails_is_finished_and_the_others_are_done(at):
    said, finished = [], []
    side_by_side([Job("a", said, at), Job("b", said)], 1, lambda job: finished.append(job.name))
    assert finished == ["a", "b"]
    assert "finish b" in said


def test_after_ctrl_c_none_is_at_work():
    said = []
    with pytest.raises(KeyboardInterrupt):
        side_by_side([Job("ctrl-c", said, "finish"), Job("b", said), Job("c", said)], 2)
    assert said[-2:] == ["kill ctrl-c", "kill b"]


@pytest.mark.parametrize(("cores", "available", "room"), [(4, 64, 4), (4, 9, 2), (4, 3, 1), (1, 64, 1)])
def test_room_is_a_core_and_memory_each(monkeypatch, cores, available, room):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.setattr(module.psutil, "virtual_memory", lambda: SimpleNamespace(available=available << 30))
    assert room_for(4 << 30) == room
