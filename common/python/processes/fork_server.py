"""The parent's side of isolation: a fork server, and handles through which a child costs no more than its own row."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

import psutil

from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.processes import messages
from common.python.processes.connection import Closed, Connection, ProtocolError, Silent, read_answer
from common.python.processes.messages import Answer, Failed, Request
from common.python.wording import seconds_text

T = TypeVar("T", bound=Answer)

_START_S = 120.0  # importing torch from a cold disk
_GOODBYE_S = 5.0
_ENDING_S = 1.0  # for a child that closed its socket to end, or was told to stop
_GLANCE_S = 5e-5
_SOON_S = 0.05

ANY_CORE = -1

RoleName = Literal["worker", "referee", "describer", "surveyor", "client"]


class ForkServer:
    """Starts children from a process that has imported torch once; restarts that process if it dies."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._children: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def for_compiled_sides(self) -> ForkServer:
        """A second one, with children of its own, that can import torch's compiler and still fork; not started yet.

        As it is imported the compiler looks for a GPU, and a process that has asked CUDA cannot fork one that uses it. NVML may be asked.
        """
        return ForkServer(self._environment | {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"})

    def fork(
        self, role: RoleName, log: Path, core: int = ANY_CORE, *, cores: Sequence[int] = (), starts: Sequence[messages.Started] = ()
    ) -> Child:
        """A new child that writes its stdout and stderr to `log`; one with a `core` runs on that alone, with memory to match.

        One with several `cores` runs on those, if there are any.

        What it `starts` it finds imported: Triton, torch's compiler, or DTensor and FSDP, and so do all that come after it. Behind Triton
        or the compiler none of them can have Triton's interpreter.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        request = messages.Fork(role=role, log=str(log), core=core, cores=list(cores), starts=list(starts))
        with theirs:
            try:
                forked = self._forked(request, theirs)
            except BaseException:
                ours.close()
                raise
        self._children.add(forked.pid)
        return Child(self, forked.pid, Connection(ours), log)

    def _forked(self, request: messages.Fork, end: socket.socket) -> messages.Forked:
        with contextlib.suppress(Closed, Silent, ProtocolError):
            return self._ask(request, messages.Forked, end.fileno())
        self.stop()
        try:
            return self._ask(request, messages.Forked, end.fileno())
        except Closed as error:
            found = "the process that forks children ended as it started"
            raise BenchmarkError(f"{found}; expected {sys.executable} to import torch") from error

    def reap(self, pid: int, seconds: float) -> str:
        """Wait up to `seconds` for the child to end, then kill it and every process that it started.

        Returns how it ended, as the rest of a sentence: `ended with exit code 1 before it answered`.
        """
        try:
            reaped = self._ask(messages.Reap(pid=pid, seconds=seconds), messages.Reaped) if pid in self._children else None
        except (Closed, Silent, ProtocolError):  # after Ctrl-C, the answer to a question that nobody waited for
            self.stop()
            reaped = None
        if reaped is None:
            return "died together with the process that forked it"
        self._children.remove(pid)
        if not reaped.ended:
            return "closed its connection to the harness and ran on"
        if reaped.code < 0:
            return f"was killed by {signal.Signals(-reaped.code).name}"
        return f"ended with exit code {reaped.code} before it answered"

    def stop(self) -> None:
        """End the server; its children die with it, and what they started is killed."""
        if self._connection is not None:
            self._connection.socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._connection = None
        for pid in self._children:
            _signal_group(pid, signal.SIGKILL)
        self._children.clear()

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-P", "-m", "common.python.child.server", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=self._environment, stdin=subprocess.DEVNULL)
        theirs.close()
        self._connection = Connection(ours)
        return self._connection

    def _ask(self, request: Request, expected: type[T], *descriptors: int) -> T:
        connection = self._connection or self._start()
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)  # a side may have stopped it
        connection.send(request, descriptors)
        answer = read_answer(connection.receive(_START_S), request, expected)
        if isinstance(answer, Failed):
            raise SideFailure(answer.status, answer.reason)
        return answer


class Child:
    """A worker, a referee or a describer in a process group of its own."""

    def __init__(self, server: ForkServer, pid: int, connection: Connection, log: Path) -> None:
        self._server = server
        self._pid = pid
        self._connection = connection
        self._log = log
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # After Ctrl-C nobody waits for a step that may take minutes.
        if kind is KeyboardInterrupt:
            self.kill()
        else:
            self.close()

    @property
    def pid(self) -> int:
        """Process id, which is also that of its group."""
        return self._pid

    def ask(self, request: Request, expected: type[T], seconds: float) -> T:
        """The answer to `request`.

        Raises SideFailure with what the child says went wrong, CRASHED if it ended or wrote something else on its
        socket, TIMEOUT after `seconds`.
        """
        self.begin(request)
        return self.finish(request, expected, seconds)

    def fileno(self) -> int:
        """The descriptor on which the answer comes, for a select over several children."""
        return self._connection.socket.fileno()

    def resume(self) -> None:
        """Let it go on: what answered is held still, and one that was at work may have stopped it."""
        _signal_group(self._pid, signal.SIGCONT)

    def begin(self, request: Request) -> None:
        """Ask without waiting, so that several children can be at work at once; `finish` has the answer."""
        self.resume()
        with contextlib.suppress(Closed):  # the answer will tell
            self._connection.send(request)

    def finish(self, request: Request, expected: type[T], seconds: float, limit_s: float | None = None) -> T:
        """The answer to a request that `begin` sent. Raises as `ask` does; `seconds` may be what is left of a limit."""
        try:
            return self.hear(request, expected, seconds, limit_s)
        finally:
            if self._open:
                self.hold_still()

    def hold_still(self) -> None:
        """Stop it until it is asked again, so that it can disturb no other's timing."""
        _hold_still(self._pid)

    def hear(self, request: Request, expected: type[T], seconds: float, limit_s: float | None = None) -> T:
        """What `finish` gives, from a child that may go on: another may need it."""
        self.resume()
        try:
            answer = read_answer(self._connection.receive(seconds), request, expected)
        except Closed:
            ending = self._end(_ENDING_S)
            raise SideFailure(
                Status.CRASHED, f"the {self._name(request)} process {ending}; expected an answer{self._last_words()}"
            ) from None
        except Silent:
            self.kill()
            raise SideFailure(
                Status.TIMEOUT, f"{self._name(request)} took more than {seconds_text(limit_s or seconds)}; expected an answer by then"
            ) from None
        except ProtocolError as error:
            self.kill()
            raise SideFailure(Status.CRASHED, f"something wrote on the harness's socket: {error}") from error
        if isinstance(answer, Failed):
            raise SideFailure(answer.status, answer.reason)
        return answer

    @property
    def has_closed(self) -> bool:
        """Whether it has closed its socket, as who dies does."""
        if not self._open or not select.select([self], (), (), 0.0)[0]:
            return False
        try:
            return not self._connection.socket.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            return True

    def stack(self) -> list[str]:
        """Where it is, innermost call first, as Python's faulthandler writes it into the log; nothing from one that does not answer."""
        begin = self._log.stat().st_size if self._log.is_file() else 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGUSR1)
        deadline = time.monotonic() + _ENDING_S
        while "(most recent call first)" not in self._logged(begin) and time.monotonic() < deadline:
            time.sleep(_SOON_S)
        time.sleep(_SOON_S)  # it writes a line at a time
        return [line.strip() for line in self._logged(begin).splitlines() if line.startswith("  File ")]

    def _logged(self, begin: int) -> str:
        return self._log.read_bytes()[begin:].decode(errors="replace") if self._log.is_file() else ""

    def begin_close(self) -> None:
        """Let the child finish without waiting for it, so that several can end side by side: a CUDA context takes long to go."""
        if self._open:
            self.resume()
            with contextlib.suppress(OSError):  # it has gone already
                self._connection.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let the child finish, then make sure that it and all it started are gone.

        Raises SideFailure if it wrote more than it was asked for: then the last answer may not have been the harness's.
        """
        if not self._open:
            return
        self.begin_close()
        with self._connection.socket.dup() as end:
            self._end(_GOODBYE_S)
            if _holds_data(end):
                raise SideFailure(Status.CRASHED, "something wrote on the harness's socket: found an answer to no request; expected none")

    def kill(self) -> None:
        """End the child and all it started, at once."""
        self._end(0.0)

    def _end(self, seconds: float) -> str:
        if not self._open:
            return "had ended"
        self._open = False
        self._connection.socket.close()
        return self._server.reap(self._pid, seconds)

    def _name(self, request: Request) -> str:
        return type(request).__name__.lower()

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n") if self._log.is_file() else []
        words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" (its last output: {words[:200]})" if words else ""


def _signal_group(pid: int, number: signal.Signals) -> None:
    """Signal a child and all of its group, or it alone if it has not made its group yet: another may have stopped it before it could."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):  # perhaps it is gone
            send(pid, number)
            return


def _hold_still(pid: int) -> None:
    """Stop the child until it is asked again, so that it can disturb no other's timing; back when it has stopped."""
    _signal_group(pid, signal.SIGSTOP)
    deadline = time.monotonic() + _ENDING_S
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(pid).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE) and time.monotonic() < deadline:
            time.sleep(_GLANCE_S)


def _holds_data(end: socket.socket) -> bool:
    try:
        return bool(end.recv(1, socket.MSG_DONTWAIT))
    except (BlockingIOError, ConnectionResetError):
        return False
