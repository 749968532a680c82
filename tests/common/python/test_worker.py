"""Where a side's threads and processes may run, as its worker sees it."""

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from common.python import worker


def wait_on(core, ready, over):
    os.sched_setaffinity(0, {core})
    ready.set()
    over.wait(60)


def start_child_on(core, ready, over):
    child = multiprocessing.get_context("fork").Process(target=wait_on, args=(core, ready, over))
    child.start()
    child.join()


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("generations", [1, 2])
def test_a_child_on_another_core_is_seen_however_the_kernel_tells_of_it(monkeypatch, listed, generations):
    ours, other = sorted(os.sched_getaffinity(0))[:2]
    if not listed:
        monkeypatch.setattr(worker, "_LISTS_CHILDREN", Path("/nowhere"))
    fork = multiprocessing.get_context("fork")
    ready, over = fork.Event(), fork.Event()
    os.sched_setaffinity(0, {ours})
    try:
        child = fork.Process(target=wait_on if generations == 1 else start_child_on, args=(other, ready, over))
        child.start()
        assert ready.wait(60)
        assert worker._cores_in_use() == {ours, other}
        over.set()
        child.join()
        assert worker._cores_in_use() == {ours}
    finally:
        over.set()
        os.sched_setaffinity(0, {ours, other})


def test_a_thread_on_another_core_is_seen():
    ours, other = sorted(os.sched_getaffinity(0))[:2]
    ready, over = threading.Event(), threading.Event()
    os.sched_setaffinity(0, {ours})
    thread = threading.Thread(target=wait_on, args=(other, ready, over))
    try:
        thread.start()
        assert ready.wait(60)
        assert other in worker._cores_in_use()
    finally:
        over.set()
        thread.join()
        os.sched_setaffinity(0, {ours, other})
