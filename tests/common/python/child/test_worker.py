"""Where a side's threads and processes may run, as its worker sees it."""

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from common.python.child import worker
from tests.support.commands import until

FORK = multiprocessing.get_context("fork")
LIMIT_S = 60.0


def wait_on(core, ready, over):
    os.sched_setaffinity(0, {core})
    ready.set()
    over.wait(LIMIT_S)


def have_a_child_on(core, ready, over):
    child = FORK.Process(target=wait_on, args=(core, ready, over))
    child.start()
    child.join()


@pytest.fixture
def seen():
    """The cores in use, as a process on one core sees them: while `start` has its child or thread wait on another, and after its end."""

    def see(start):
        ours, other = sorted(os.sched_getaffinity(0))[:2]

        def watch(answers):  # in a process of its own, as that of the tests has other children
            os.sched_setaffinity(0, {ours})
            ready, over = FORK.Event(), FORK.Event()
            started = start(other, ready, over)
            ready.wait(LIMIT_S)
            answers.put(worker._cores_in_use() - {ours})
            over.set()
            started.join()
            answers.put(worker._cores_in_use() - {ours})

        answers = FORK.Queue()
        process = FORK.Process(target=watch, args=(answers,))
        process.start()
        found = [answers.get(timeout=LIMIT_S), answers.get(timeout=LIMIT_S)]
        process.join()
        return found, {other}

    return see


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("target", [wait_on, have_a_child_on])
def test_a_process_on_another_core_is_seen_however_the_kernel_tells_of_it(monkeypatch, seen, target, listed):
    def start(*arguments):
        child = FORK.Process(target=target, args=arguments)
        child.start()
        return child

    if not listed:
        monkeypatch.setattr(worker, "_LISTS_CHILDREN", Path("/nowhere"))
    found, other = seen(start)
    assert found == [other, set()]


class WholeThread(threading.Thread):
    """A thread that has not ended while the kernel has it, which it may for a moment after Python is done with it."""

    def join(self, timeout=None):
        super().join(timeout)
        until(lambda: not Path(f"/proc/self/task/{self.native_id}").exists(), "the end of a thread")


def test_a_thread_on_another_core_is_seen(seen):
    def start(*arguments):
        thread = WholeThread(target=wait_on, args=arguments)
        thread.start()
        return thread

    found, other = seen(start)
    assert found == [other, set()]
