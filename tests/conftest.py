"""Which tests run where and when: those marked `gpu` on a CUDA device, those marked `alone` while no other test runs.

The tests of a file run in one process, which has the file's fixtures; those in tests/pairs, which share none, a chapter or lab at a time.
On a machine with a GPU all tests do.

A run is refused while another process computes on its GPU, and pytest's own is one as soon as a test has used CUDA in it. So tests that
time on a GPU by the command line are marked `unused_gpu` too and go before all others.
"""

import fcntl
import os
import re
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager

import pynvml
import pytest
from xdist import is_xdist_worker
from xdist.scheduler import LoadFileScheduling

from common.python.machine.description import nvml_session

LONG = 20  # others that a slow test, or one of a pair, takes as long as


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """No workers where there is a GPU; else None, as many as xdist would have."""
    return 0 if gpus() else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A process runs the tests of a file, or of a chapter or lab in one of those about all pairs: the longest takes a third of all time."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False  # by how many tests a part has: `in_order` knows more
    return ByFileAndChapter(config, log)


class ByFileAndChapter(LoadFileScheduling):
    """What one process gets at a time."""

    def _split_scope(self, nodeid):
        return part_of(nodeid)


def part_of(nodeid):
    """The tests that one process gets at a time, by a test's id."""
    chapter = re.match(r"(tests/pairs/\w+\.py)::\w+\[(ch\d\d|labs/\w+)\b", nodeid)
    return "::".join(chapter.groups()) if chapter else nodeid.partition("::")[0]


def in_order(items):
    """The parts that take long first, or one process works at the last of them while others have nothing left."""
    lengths = Counter()
    for item in items:
        is_long = item.get_closest_marker("slow") is not None or item.nodeid.startswith("tests/pairs/")
        lengths[part_of(item.nodeid)] += LONG if is_long else 1
    return sorted(items, key=lambda item: -lengths[part_of(item.nodeid)])


def gpus(nvml=pynvml):
    """How many GPUs NVML sees: importing torch to ask it would take seconds."""
    with nvml_session(nvml) as failure:
        return 0 if failure else nvml.nvmlDeviceGetCount()


def pytest_addoption(parser):
    parser.addoption(
        "--without-slow", action="append", default=[], metavar="FOLDER", help="leave out the slow tests of a folder, tests/ch10 say"
    )


@pytest.hookimpl(tryfirst=True)  # before what -m leaves is counted
def pytest_collection_modifyitems(session, config, items):
    folders = [config.rootpath / folder for folder in config.getoption("--without-slow")]
    left_out = [item for item in items if item.get_closest_marker("slow") and any(map(item.path.is_relative_to, folders))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    if is_xdist_worker(session):
        items[:] = in_order(items)
    items.sort(key=lambda item: item.get_closest_marker("unused_gpu") is None)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not has_cuda():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; torch finds none"))


def pytest_collection_finish(session):
    """Each process has its part of the cores: of torch's threads those that are done wait for the others, at work all the while."""
    if is_xdist_worker(session) and "torch" in sys.modules:
        cores = len(os.sched_getaffinity(0))
        sys.modules["torch"].set_num_threads(max(1, cores // session.config.workerinput["workercount"]))


def has_cuda():
    """Whether torch can use a GPU; it is not imported where NVML sees none."""
    if not gpus():
        return False
    import torch

    return torch.cuda.is_available()


@pytest.fixture(scope="session")
def server():
    """The fork server of all tests in this process."""
    from tests.support.commands import shared_server

    return shared_server()


@pytest.fixture(scope="session")
def triton_server():
    """Another, for forks with Triton started: after the first, all its children have it."""
    from tests.support.commands import CHILD_ENVIRONMENT, ForkServer

    with ForkServer(CHILD_ENVIRONMENT) as server:
        yield server


PASSED_ON = pytest.StashKey[ExitStack]()  # the turn of a test that must be alone, to the next one of its process


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Between two tests of a process that both must be alone none of another gets its turn: each would wait for one that may take long."""
    stash = item.config.stash
    has_turn = PASSED_ON in stash
    with stash.setdefault(PASSED_ON, ExitStack()) as turns:
        del stash[PASSED_ON]
        if not has_turn:
            turns.enter_context(turn(item.config.rootpath / ".pytest_cache", alone=must_be_alone(item)))
        found = yield
        if must_be_alone(item) and must_be_alone(nextitem):
            stash[PASSED_ON] = turns.pop_all()
        return found


def must_be_alone(item):
    """Whether no other test may run meanwhile."""
    return item is not None and item.get_closest_marker("alone") is not None


@contextmanager
def turn(folder, *, alone):
    """Wait until no test runs if this one must be `alone`, or else until none that must be. Who waits lets nobody past."""
    folder.mkdir(exist_ok=True)
    with (folder / "queue.lock").open("w") as queue, (folder / "running.lock").open("w") as running:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield
