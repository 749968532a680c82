"""SIGTERM and SIGHUP, which `timeout`, a batch system and a closing terminal send, end a run as Ctrl-C does: it keeps what it has."""

from __future__ import annotations

import errno
import os
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from common.python.errors import BenchmarkError, ExitCode

_CODES = {signal.SIGTERM: ExitCode.TERMINATED, signal.SIGHUP: ExitCode.HUNG_UP}


class Interrupted(BenchmarkError):
    """What a signal ended before there was anything to keep."""

    def __init__(self, code: ExitCode) -> None:
        super().__init__("interrupted; nothing was kept")
        self.exit_code = code


class Interruption:
    """What interrupts a run: `code` is the exit code that it earns.

    The first signal raises KeyboardInterrupt where the main thread is. Later ones do nothing, as `timeout` signals twice; nor does any
    once the run is `over` and only writes its reports.
    """

    def __init__(self) -> None:
        self.code = ExitCode.INTERRUPTED
        self.over = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        """Handle a signal."""
        if not self.over:
            self.over = True
            self.code = _CODES[signal.Signals(number)]
            _leave_terminal()
            raise KeyboardInterrupt


def _leave_terminal() -> None:
    """Where the terminal is gone, have what is still printed go nowhere: writing to it is an error, and the reports are not written yet."""
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """A block that signals interrupt; one that was ignored before, as nohup has it of SIGHUP, stays so.

    Raises Interrupted for a signal that the block lets through; Ctrl-C stays KeyboardInterrupt.
    """
    interruption = Interruption()
    before = {}
    if threading.current_thread() is threading.main_thread():  # nobody else may set a handler
        before = {number: signal.getsignal(number) for number in _CODES if signal.getsignal(number) is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, interruption)
        yield interruption
    except KeyboardInterrupt as error:
        if interruption.code is ExitCode.INTERRUPTED:
            raise
        raise Interrupted(interruption.code) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
