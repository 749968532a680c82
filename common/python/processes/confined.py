"""What a process takes from itself before it runs a Python script whose children nobody trusts; nothing gives any of it back.

It needs no right of its own where the kernel lets users make namespaces. Paths in `writable` are there already. A device file, such as
a GPU's, can be opened for writing as before: a read-only mount keeps nobody from that.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import runpy
import signal
import struct
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

UNCONFINED = 97  # the exit code of one that could not be confined, and so has run nothing
SHARED_MEMORY = "/dev/shm"
_PROCESSES = "/proc"
_SERVICES = "/run"  # where the sockets of this machine's services are

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_RDONLY = 1
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 442, 444, 446  # the same for every processor
_LANDLOCK_VERSION = 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_SIGNALS_SINCE = 6  # version of Landlock
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 28, 38
_NO_ROOT = 3  # an exec as user 0 gives no capability, and nothing can change that
_CAPABILITIES_V3 = 0x20080522
_SECCOMP_FILTER = 2


class _Processor(NamedTuple):
    """As the kernel's audit names it, and its number of the call `socket`."""

    audit: int
    socket: int


_PROCESSORS = {"x86_64": _Processor(0xC000003E, 41), "aarch64": _Processor(0xC00000B7, 198)}
_libc = ctypes.CDLL(None, use_errno=True)


class Unconfined(Exception):
    """A restriction that this kernel, or the container, does not let the process have; its text is half a sentence."""


def confine(writable: list[str], shared_memory_bytes: int, allowed: list[str]) -> None:
    """Take from this process what is not `allowed` of network, files and signals. Raises Unconfined.

    Its children find nothing at Internet addresses, and asking for such a socket ends them. /run, with the sockets of this machine's
    services, is empty. No file outside `writable` and a private /dev/shm can be changed, by no user, but for settings of this user's
    processes in /proc, such as how soon they end where memory runs out. No process that it did not start can be signalled. It has no
    capabilities.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")  # the first to go where memory runs out
    namespaces = {"network", "files"} - set(allowed)
    if namespaces:
        _enter(_CLONE_NEWNS | _CLONE_NEWNET * ("network" in namespaces))
        _done(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
    if "network" in namespaces and Path(_SERVICES).is_dir():
        _done(_libc.mount(b"tmpfs", _SERVICES.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"size=1m"), "mount")
    if "files" in namespaces:
        _mount_read_only(writable, shared_memory_bytes)
    if namespaces:
        _drop_capabilities()
    _done(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    if "signals" not in allowed:
        _scope_signals()
    if "network" not in allowed:
        _end_at_sockets()


def _done(result: int, call: str) -> int:
    if result < 0:
        raise Unconfined(f"{call}: {os.strerror(ctypes.get_errno())}")
    return result


def _enter(namespaces: int) -> None:
    """These namespaces, and one of users in which each keeps the number that it has."""
    user, group = os.getuid(), os.getgid()
    _done(_libc.unshare(_CLONE_NEWUSER | namespaces), "unshare")
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        try:
            Path("/proc/self", file).write_text(text, encoding="ascii")
        except OSError as error:
            raise Unconfined(f"/proc/self/{file}: {error.strerror}") from error


def _mount_read_only(writable: list[str], shared_memory_bytes: int) -> None:
    """All mounts but those of the folders `writable`, of a new /dev/shm that goes with the last process, and of processes in /proc.

    The driver of CUDA names its threads in /proc/self/task, and does not start where it cannot. All else in /proc is a mount of its own.
    """
    folders, are_writable = [os.fsencode(folder) for folder in writable], not os.statvfs(_PROCESSES).f_flag & os.ST_RDONLY
    with os.scandir(_PROCESSES) as found:
        of_the_machine = [os.fsencode(each.path) for each in found if not each.name.isdecimal() and not each.is_symlink()]
    for path in folders + of_the_machine:
        _done(_libc.mount(path, path, None, _MS_BIND | _MS_REC, None), "mount")
    _set_mount(b"/", _AT_RECURSIVE, (_MOUNT_RDONLY, 0))
    for path in folders + [os.fsencode(_PROCESSES)] * are_writable:
        _set_mount(path, 0, (0, _MOUNT_RDONLY))
    options = f"size={shared_memory_bytes},mode=1777".encode()
    _done(_libc.mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options), "mount")
    os.chdir(Path.cwd())  # by its path: the folder as it is mounted now


def _set_mount(path: bytes, flags: int, set_and_cleared: tuple[int, int]) -> None:
    attributes = struct.pack("4Q", *set_and_cleared, 0, 0)
    _done(_libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, path, flags, attributes, ctypes.c_size_t(len(attributes))), "mount_setattr")


def _drop_capabilities() -> None:
    _done(_libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT, 0, 0, 0), "prctl")
    number = 0
    while _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    _done(_libc.capset(struct.pack("Ii", _CAPABILITIES_V3, 0), bytes(24)), "capset")


def _scope_signals() -> None:
    version = _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    if version < _SIGNALS_SINCE:
        raise Unconfined(f"Landlock: version {version if version > 0 else 'none'}, and signals need {_SIGNALS_SINCE}")
    attributes = struct.pack("3Q", 0, 0, _SCOPE_SIGNALS | _SCOPE_ABSTRACT_SOCKETS)
    rules = _done(_libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock_create_ruleset")
    _done(_libc.syscall(_LANDLOCK_RESTRICT, rules, 0), "landlock_restrict_self")
    os.close(rules)


def _end_at_sockets() -> None:
    """A filter of the call `socket`: it ends a process that wants one of the Internet, and refuses all others but the local ones."""
    if platform.machine() not in _PROCESSORS:
        raise Unconfined(f"a processor {platform.machine()}, and sockets are filtered on {' and '.join(_PROCESSORS)}")
    processor = _PROCESSORS[platform.machine()]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    kill, refuse, allow = 0x80000000, 0x50000 | 13, 0x7FFF0000  # 13: EACCES
    program = [
        (load, 0, 0, 4),  # the processor's kind
        (equal, 0, 9, processor.audit),  # else a call of another kind, whose numbers differ
        (load, 0, 0, 0),  # the call
        (at_least, 7, 0, 0x40000000),  # numbers of x32
        (equal, 0, 5, processor.socket),
        (load, 0, 0, 16),  # its first argument
        (equal, 3, 0, 1),  # AF_UNIX
        (equal, 3, 0, 2),  # AF_INET
        (equal, 2, 0, 10),  # AF_INET6
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
        (answer, 0, 0, kill),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    _done(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.c_void_p(ctypes.addressof(filter_)), 0, 0), "seccomp")


def _keep_stdout() -> None:
    """What this process prints goes where no child can write or read: none inherits it, and none may look into this process."""
    own = os.dup(1)  # which no child inherits
    os.dup2(2, 1)
    sys.stdout = os.fdopen(own, "w", encoding="utf-8", closefd=False)
    _done(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")


def main() -> NoReturn:
    """Confine this process as the first argument says, then run the script that is the second one with the others.

    The script finds what PYTHONPATH has, not what lies beside it.
    """
    told = json.loads(sys.argv[1])
    try:
        confine(told["writable"], told["shared_memory_bytes"], told["allowed"])
        _keep_stdout()
    except Unconfined as lacking:
        sys.stderr.write(f"{lacking}\n")
        sys.exit(UNCONFINED)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != told["parent"]:  # it ended before its end could be told
        sys.exit(UNCONFINED)
    sys.argv = sys.argv[2:]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        sys.stdout.flush()
    sys.exit(0)


if __name__ == "__main__":
    main()
