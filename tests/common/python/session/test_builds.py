"""CUDA sides are built ahead, several at a time, each once; one that fails costs no other anything and is its own row's matter."""

import threading
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.processes import messages
from common.python.session import builds
from common.python.session.builds import build_ahead, build_row
from tests.support.plans import a_plan

LISTED = []


class Compiler(AbstractContextManager):
    """A child that compiles at once what it is asked to, or fails."""

    def __init__(self, server):
        self.server, self.killed = server, False

    def __exit__(self, *_):
        self.server.at_work -= 1

    def kill(self):
        self.killed = True

    def begin(self, request):
        self.server.at_work += 1
        self.server.most = max(self.server.most, self.server.at_work)
        self.server.asked.append(request.source)

    def finish(self, request, expected, seconds):
        if "broken" in request.source:
            raise SideFailure(Status.BUILD_FAILED, "no")
        if "endless" in request.source:
            raise KeyboardInterrupt
        return messages.BuildDone(nonce="", library=f"{request.source}.so", seconds=1.0, cached=False, log="")


class Server:
    def __init__(self):
        self.asked, self.children, self.at_work, self.most = [], [], 0, 0

    def fork(self, role, log):
        self.children.append(Compiler(self))
        return self.children[-1]


@pytest.fixture
def session(monkeypatch, tmp_path):
    monkeypatch.setattr(builds.os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(builds.psutil, "virtual_memory", lambda: SimpleNamespace(available=64 << 30))
    monkeypatch.setattr(builds, "read_code", lambda library: LISTED.append((library.name, threading.current_thread())))
    LISTED.clear()
    told = []
    return SimpleNamespace(
        server=Server(),
        builds={},
        told=told,
        tell=told.append,
        logs=lambda target, side: tmp_path,
        root_of=lambda source: tmp_path,
        limit_s=lambda phase: 60.0,
    )


MACHINE = SimpleNamespace(gpus=())


def plans_of(*names):
    return [a_plan(Path("demo"), name, suffix=".cu") for name in names]


def test_every_side_is_built_once_as_many_at_a_time_as_there_are_cores(session):
    plans = plans_of("a", "b", "c")
    build_ahead([*plans, plans[0]], session, MACHINE, session.tell)
    assert len(session.server.asked) == len(set(session.server.asked)) == len(session.builds) == 6
    assert session.server.most == 3
    assert session.told[-1] == "built 6 of 6 CUDA sides"
    assert len(LISTED) == 6
    assert threading.main_thread() not in {thread for _, thread in LISTED}
    build_ahead(plans, session, MACHINE, session.tell)
    build_row(plans[0], session, MACHINE)
    assert len(session.server.asked) == 6


def test_what_fails_is_left_to_its_row(session):
    broken, whole = plans_of("broken", "whole")
    build_ahead([broken, whole], session, MACHINE, session.tell)
    assert all("whole" in source for source in session.builds)
    assert len(session.builds) == 2
    with pytest.raises(SideFailure, match="no"):
        build_row(broken, session, MACHINE)


def test_after_ctrl_c_no_compiler_works_on(session):
    with pytest.raises(KeyboardInterrupt):
        build_ahead(plans_of("endless", "whole"), session, MACHINE, session.tell)
    left = [child for child in session.server.children[1:] if not child.killed]
    assert left == []


@pytest.mark.parametrize(("cores", "available"), [({0}, 64 << 30), ({0, 1, 2}, 7 << 30)])
def test_on_one_core_or_with_little_memory_each_row_builds_its_own(session, monkeypatch, cores, available):
    monkeypatch.setattr(builds.os, "sched_getaffinity", lambda _: cores)
    monkeypatch.setattr(builds.psutil, "virtual_memory", lambda: SimpleNamespace(available=available))
    build_ahead(plans_of("a", "b"), session, MACHINE, session.tell)
    assert session.server.asked == []
