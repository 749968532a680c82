"""Standard output and error that no write can stop: a full disk or a reader who has left costs what is printed, and no result."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TextIO

from common.python.errors import ExitCode

_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE)


class _Sink(io.FileIO):
    """An open file; `lost` is what the system said of the first write that failed, after which nothing more is written."""

    lost: OSError | None = None

    def write(self, data: object, /) -> int:
        """Write some of `data`, or drop it; the number of bytes that are dealt with."""
        size = memoryview(data).nbytes  # type: ignore[arg-type]
        if self.lost:
            return size
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except OSError as error:
            if error.errno not in _LOST:
                raise
            self.lost = error
            return size


class Output:
    """What this process prints to, from now on: `sys.stdout` and `sys.stderr`, with characters that they have no bytes for replaced."""

    def __init__(self) -> None:
        self._sink = _sink(sys.stdout)
        sys.stdout = _text(self._sink, sys.stdout, lines=sys.stdout is not None and sys.stdout.isatty())
        sys.stderr = _text(_sink(sys.stderr), sys.stderr, lines=True)

    def ended(self, code: int) -> int:
        """The exit code of a command that has printed all and earned `code`: another where there was no room for what it printed."""
        sys.stdout.flush()
        lost = self._sink.lost
        if lost is None or lost.errno == errno.EPIPE:  # a reader who has seen enough
            return code
        print(f"error: standard output: {lost.strerror}; expected to print there", file=sys.stderr)
        return code or int(ExitCode.FULL_DISK)


def _sink(stream: TextIO | None) -> _Sink:
    """The file of an open stream. One that was closed before we began prints nowhere, lest a document gets its descriptor."""
    return _Sink(os.devnull, "w") if stream is None else _Sink(stream.fileno(), "w", closefd=False)


def _text(sink: _Sink, like: TextIO | None, *, lines: bool) -> io.TextIOWrapper:
    """Text in the encoding of the stream `like`, written to `sink`, a line at a time or in blocks."""
    encoding = like.encoding if like else "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(sink), encoding=encoding, errors="replace", line_buffering=lines)
