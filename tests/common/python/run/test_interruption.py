"""A signal is as Ctrl-C, once; what was ignored stays so, and what was there before is there again."""

import os
import signal
import threading

import pytest

from common.python.errors import ExitCode
from common.python.run.interruption import Interrupted, interruptible

BOTH = [(signal.SIGTERM, ExitCode.TERMINATED), (signal.SIGHUP, ExitCode.HUNG_UP)]


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(("number", "code"), BOTH)
def test_the_first_signal_interrupts_and_later_ones_do_nothing(number, code):
    before = signal.getsignal(number)
    with interruptible() as interruption:
        with pytest.raises(KeyboardInterrupt):
            send(number)
        send(number)
        assert interruption.code is code
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), BOTH)
def test_what_is_not_caught_has_the_exit_code_of_its_signal(number, code):
    with pytest.raises(Interrupted, match="interrupted; nothing was kept") as caught, interruptible():
        send(number)
    assert caught.value.exit_code is code


def test_ctrl_c_stays_what_it_is():
    with pytest.raises(KeyboardInterrupt), interruptible() as interruption:
        raise KeyboardInterrupt
    assert interruption.code is ExitCode.INTERRUPTED


def test_a_run_that_is_over_writes_its_reports():
    with interruptible() as interruption:
        interruption.over = True
        send(signal.SIGTERM)
    assert interruption.code is ExitCode.INTERRUPTED


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as interruption:
            send(signal.SIGHUP)
        assert interruption.code is ExitCode.INTERRUPTED
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_sets_no_handler():
    entered = []

    def enter():
        with interruptible():
            entered.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.getsignal(signal.SIGTERM)]
