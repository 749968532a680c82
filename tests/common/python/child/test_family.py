"""Where a side's threads and processes run, and what they do between its calls, as its worker sees it."""

import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest
import torch

from common import Spec, Workload
from common.python.child import family
from common.python.child.device.sampler import Sampler
from common.python.child.sides.inputs import Inputs
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
            answers.put(family.cores_in_use() - {ours})
            over.set()
            started.join()
            answers.put(family.cores_in_use() - {ours})

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
        monkeypatch.setattr(family, "_LISTS_CHILDREN", Path("/nowhere"))
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


BUSY_S = 0.02


def work(begin, done):
    """Use the CPU for BUSY_S whenever told to."""
    while begin.get():
        end = time.thread_time() + BUSY_S
        while time.thread_time() < end:
            pass
        done.put(True)


@pytest.fixture(params=["thread", "process"])
def helper(request):
    """Something beside the calling thread that works when it is told to, and the queues by which it is told and tells."""
    begin, done = FORK.Queue(), FORK.Queue()
    started = {"thread": threading.Thread, "process": FORK.Process}[request.param](target=work, args=(begin, done))
    started.start()
    yield begin, done
    begin.put(False)
    started.join()


def call(between, helper, *, works):
    between.call_begins()
    if works:
        order(helper)
    between.call_ended(int(2e9 * BUSY_S))


def order(helper):
    begin, done = helper
    begin.put(True)
    assert done.get(timeout=LIMIT_S)


def test_work_between_calls_is_seen(helper):
    between = family.BetweenCalls()
    between.block_begins()
    for _ in range(3):
        order(helper)
        call(between, helper, works=False)
    assert "at work for 2" in between.work()


def test_work_within_calls_is_not(helper):
    between = family.BetweenCalls()
    order(helper)
    between.block_begins()
    for _ in range(3):
        call(between, helper, works=True)
    assert between.work() == ""


def test_a_block_knows_nothing_of_the_one_before(helper):
    between = family.BetweenCalls()
    between.block_begins()
    order(helper)
    call(between, helper, works=False)
    assert between.work() != ""
    between.block_begins()
    assert between.work() == ""


@pytest.mark.parametrize("lazy", [False, True])
def test_what_draws_inputs_is_not_taken_for_threads_of_the_side(tmp_path, lazy):
    """A side may have threads, and inputs are drawn with all of torch's: what the side leaves to its own is still seen."""

    def step():
        if lazy:
            threading.Thread(target=torch.ones(1 << 22).sin).start()
        return torch.ones(1)

    workload = Workload(
        inputs=lambda rand, n: {"x": rand.normal(n), "drawn": torch.arange(1 << 22).float().sin().log2().sum()},
        outputs=lambda n: {"y": Spec((n,), torch.float32)},
        reference=lambda x: x,
        time_at={"n": 64},
        check_at=({"n": 3},),
        work=lambda n: {},
        rtol=0.0,
        atol=0.0,
    )
    inputs = Inputs(workload, {"n": 64}, 1, torch.device("cpu"), tmp_path)
    sampler = Sampler(workload, [(inputs, step)], torch.device("cpu"), "a test", lambda returned, copy: {"y": returned})
    sampler.between = family.BetweenCalls()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sampler.block(7, 5, {}, lambda i: None, sustained=False)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert bool(sampler.between.work()) is lazy
