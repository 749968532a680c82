"""How a command-line tool takes its arguments and how it ends: one sentence for a bad one, silence where nobody reads on."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from common.python.errors import ExitCode

_READER_LEFT = 128 + signal.SIGPIPE  # what a shell says of a program that SIGPIPE ended


class Arguments(argparse.ArgumentParser):
    """Arguments of a tool: a bad one is one sentence on stderr, and the exit code for bad usage, not argparse's 2, a regression's."""

    def error(self, message: str) -> NoReturn:
        """End the process. A type tells what was found and expected in the ArgumentTypeError that it raises."""
        sentence = message.removeprefix("argument ")
        self.exit(ExitCode.USAGE, f"error: {sentence if '; expected ' in sentence else f'{sentence}; expected what --help lists'}\n")


def finite_above_0(text: str) -> float:
    """An argument that is a duration or an amount. Raises ArgumentTypeError for text that is no number, and for 0, less, nan and inf."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"found {text}; expected a finite number above 0")
    return number


def exit_with(main: Callable[[], int]) -> NoReturn:
    """End this process with what `main` returns; where the reader of its output has left, as in `| head`, silently and as SIGPIPE would.

    The signal itself is left ignored, as Python has it: a process that only talks to its children over sockets must live through it.
    """
    try:
        code = int(main())
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):  # rich turns the one into the other
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes where it disturbs nobody
        code = _READER_LEFT
    sys.exit(code)
