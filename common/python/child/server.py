"""The children's side of isolation: a fork server that has torch and no CUDA context, and the loop in which a child answers.

The parent starts it as `python -m common.python.child.server FD`. This module and `fork_server` are the only ones that
catch every exception: whatever a side does ends in an answer with a status, or in a closed socket that the parent notices.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NoReturn, Protocol

import psutil
import torch

from common.python.child.describer import Describer
from common.python.child.distributed import start_meshes
from common.python.child.referee import Referee
from common.python.child.serving.client import Client
from common.python.child.sides.triton import start_compiler, start_triton
from common.python.child.survey.gpu import Surveyor
from common.python.child.tamper import seal
from common.python.child.worker import Worker
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.description import profiler_attached
from common.python.processes import messages
from common.python.processes.connection import Closed, Connection
from common.python.processes.messages import Answer, AnyRequest, Failed
from common.python.project import PROJECT_ROOT

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MEMORY_SHARE = 0.8  # of what is available when a CPU child starts: an allocation beyond it fails in the child alone

ROLES: dict[str, type[Worker] | type[Referee] | type[Describer] | type[Surveyor] | type[Client]] = {
    "worker": Worker,
    "referee": Referee,
    "describer": Describer,
    "surveyor": Surveyor,
    "client": Client,
}

_STARTS: dict[str, Callable[[], object]] = {"triton": start_triton, "compiler": start_compiler, "meshes": start_meshes}

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Role(Protocol):
    """Something that answers requests."""

    def answer(self, request: AnyRequest) -> Answer:
        """Do what is asked."""

    def close(self) -> None:
        """Give back what it holds."""


def serve_forks(connection: Connection) -> None:
    """Fork a child for every Fork request and end them for Reap requests, until the parent closes the socket."""
    seal()  # made here, once, every child has it before it imports a side
    gc.freeze()  # what is here stays: the collection before a timed block, 0.1 s of torch's objects, need not look at it
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Python 3.12 warns of threads. Those here are OpenBLAS's, which NumPy starts: it ends them before a fork.
    warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded, use of fork", DeprecationWarning)
    roles: dict[int, str] = {}
    server = os.getpid()
    while True:
        try:
            request, descriptors = connection.receive_with_descriptors(1)
        except Closed:
            return
        if isinstance(request, messages.Fork):
            for name in request.starts:
                _STARTS[name]()
            pid = os.fork()
            if pid == 0:
                connection.socket.close()
                _run_child(request, descriptors[0], server)
            os.close(descriptors[0])
            roles[pid] = request.role
            connection.send(messages.Forked(nonce=request.nonce, pid=pid))
        elif isinstance(request, messages.Reap):
            reaped = _reap(request)
            del roles[request.pid]
            if "worker" not in roles.values():
                _end_orphans(roles.keys())
            connection.send(reaped)


def _reap(request: messages.Reap) -> messages.Reaped:
    """Give the child its time to end by itself, then end all that is left of its process group."""
    deadline = time.monotonic() + request.seconds
    while not (ended := os.waitid(os.P_PID, request.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and time.monotonic() < deadline:
        time.sleep(0.002)
    # Before the child is waited for: until then nobody else can have its number.
    try:
        os.killpg(request.pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(request.pid, signal.SIGKILL)  # it had no time to make its group
    _, status = os.waitpid(request.pid, 0)
    return messages.Reaped(nonce=request.nonce, ended=ended is not None, code=os.waitstatus_to_exitcode(status))


def _end_orphans(known: Collection[int]) -> None:
    """End what the children of gone workers have become: processes that left their group, and that nobody forked here."""
    while orphans := [process.pid for process in psutil.Process().children() if process.pid not in known]:
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _run_child(request: messages.Fork, descriptor: int, server: int) -> NoReturn:
    code = 1
    try:
        _isolate(request, server)
        if profiler_attached():
            _start_anew(request.role, descriptor)
        end = socket.socket(fileno=descriptor)
        end.set_inheritable(False)
        answer_requests(ROLES[request.role](), Connection(end))
        code = 0
    finally:
        # Past Python's own exit: a side's atexit handlers and threads must not hold the process.
        os._exit(code)


def _start_anew(role: str, descriptor: int) -> NoReturn:
    """Go on as a new program: a profiler that the run was started under does not see what a fork does without an exec."""
    os.set_inheritable(descriptor, True)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "common.python.child.server", str(descriptor), role])


def _isolate(request: messages.Fork, server: int) -> None:
    os.setsid()
    for number in _ENDING:  # by which a side may end processes of its own
        signal.signal(number, signal.SIG_DFL)
    die_with_parent(server)
    with contextlib.suppress(OSError):  # a sandbox has done it, and then made /proc read-only
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    log = os.open(request.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    if request.cores:
        os.sched_setaffinity(0, request.cores)
    if request.core >= 0:
        os.sched_setaffinity(0, {request.core})
        torch.set_num_threads(1)
        limit = int(_MEMORY_SHARE * psutil.virtual_memory().available)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent, of that number, ends, so that a killed run leaves no orphans.

    Raises SystemExit if it has ended already, which the kernel would never tell.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def answer_requests(role: Role, connection: Connection) -> None:
    """Answer requests until the other end closes; every exception becomes an answer."""
    # Bound before a side is imported, which can then not put others in their place.
    broken, receive, send, failed = seal(), connection.receive_request, connection.send, Failed
    while True:
        try:
            request = receive()
        except Closed:
            break
        answer = answer_safely(role, request)
        problem = broken()
        send(failed(nonce=request.nonce, status=Status.WRONG_RESULT, reason=problem) if problem else answer)
    role.close()


def answer_safely(role: Role, request: AnyRequest) -> Answer:
    """The role's answer, or what went wrong as a status and one sentence."""
    try:
        return role.answer(request)
    except SideFailure as failure:
        return Failed(nonce=request.nonce, status=failure.status, reason=failure.reason)
    except BenchmarkError as error:
        return Failed(nonce=request.nonce, status=Status.CRASHED, reason=str(error))
    except BaseException as error:
        traceback.print_exc()
        return Failed(nonce=request.nonce, status=status_of(error), reason=sentence_of(error))


def status_of(error: BaseException) -> Status:
    """The status that an exception raised by a side's own code stands for."""
    text = str(error)
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in text:
        return Status.OUT_OF_MEMORY
    if "CUDA error" in text or "CUDA driver error" in text:
        return Status.LAUNCH_FAILED
    return Status.CRASHED


def sentence_of(error: BaseException) -> str:
    """What was raised and where, in one line."""
    frames: list[Any] = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if "/common/python/" not in frame.filename and "site-packages" not in frame.filename]
    frame = (outside or frames)[-1]
    place = (error.filename, error.lineno) if isinstance(error, SyntaxError) and error.filename else (frame.filename, frame.lineno)
    message = " ".join(str(error).split())[:300]
    return f"{Path(place[0]).name}:{place[1]}: raised {type(error).__name__}: {message}; expected {_instead_of(error, Path(place[0]))}"


def _instead_of(error: BaseException, file: Path) -> str:
    """What would not have raised it in `file`, of imports, which depend on where a root lies."""
    if not isinstance(error, ImportError):
        return "no exception"
    name = (error.name or "").partition(".")[0]
    if "relative import" in str(error):
        return "an absolute import, as each file of a pair is imported by itself"
    if name and (PROJECT_ROOT / name).is_dir():
        return f"what {PROJECT_ROOT / name} has, which comes before any other {name}"
    if isinstance(error, ModuleNotFoundError) and name not in sys.modules and (found := _lies_above(name, file)):
        return f"a module of a project: {found.name} lies in {found.parent}: put a pyproject.toml beside it"
    return "a module beside the file, one that is installed, or one of the package or project that holds the root"


def _lies_above(name: str, file: Path) -> Path | None:
    """The module or package of that name in the root of a pair's `file`, or beside the root."""
    above = [folder for folder in list(file.resolve().parents)[1:3] if not (folder / "pyproject.toml").exists()]
    places = (folder / each for folder in above for each in (f"{name}.py", name))
    return next((place for place in places if place.is_file() or any(place.glob("*.py"))), None) if name else None


if __name__ == "__main__" and len(sys.argv) > 2:
    # This one ends as Python does: a profiler writes what it has when a program exits.
    answer_requests(ROLES[sys.argv[2]](), Connection(socket.socket(fileno=int(sys.argv[1]))))
elif __name__ == "__main__":
    # Terminals and batch systems signal the whole group; what to stop, and when, is the parent's to say.
    for number in (signal.SIGINT, *_ENDING):
        signal.signal(number, signal.SIG_IGN)
    die_with_parent(os.getppid())  # one that has ended has closed the socket
    serve_forks(Connection(socket.socket(fileno=int(sys.argv[1]))))
