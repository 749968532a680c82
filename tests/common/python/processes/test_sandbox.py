"""The sandbox: each restriction stops what it is for, limits end all processes, nothing is left, and what is lacking is a sentence."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from common.python.errors import BenchmarkError
from common.python.machine.description import sandbox_environment
from common.python.processes.sandbox import RESTRICTIONS, Limits, require_sandbox, run_in_sandbox
from tests.support.commands import ROOT_FIRST

GENEROUS = Limits(memory_bytes=2 << 30, seconds=60.0)


@pytest.fixture(scope="module", autouse=True)
def _sandbox():
    try:
        require_sandbox(GENEROUS)
    except BenchmarkError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "box"
    made.mkdir()
    return made


def run(folder, text, limits=GENEROUS, arguments=()):
    script = folder.parent / "script.py"
    script.write_text(textwrap.dedent(text))
    return run_in_sandbox(script, list(map(str, arguments)), folder, limits)


def processes_of(marker):
    """What runs with the words of `marker` in its command line."""
    named = [process for process in psutil.process_iter(["cmdline"]) if str(marker) in (process.info["cmdline"] or [])]
    return [process for process in named if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


WRITES = """
    import json, os, sys
    from pathlib import Path
    told = {}
    for path in sys.argv[1:]:
        try:
            Path(path).write_text("changed")
            told[path] = "written"
        except OSError as error:
            told[path] = error.strerror
    print(json.dumps(told))
"""


def test_files_are_written_in_its_own_folders_alone(folder, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("kept")
    inside = [str(folder / name / "file") for name in ("run", "cache", "tmp")] + ["/dev/shm/of_the_sandbox"]
    inside += ["/proc/self/comm"]  # CUDA's driver names its threads, or does not start
    outside = [str(kept), str(folder / "file"), "/tmp/of_the_sandbox", str(Path.home() / "of_the_sandbox")]
    outside += ["/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/pid_max"]  # no number is written, so nothing changes
    told = json.loads(run(folder, WRITES, arguments=[*inside, *outside]).stdout)
    assert told == dict.fromkeys(inside, "written") | dict.fromkeys(outside, "Read-only file system")
    assert kept.read_text() == "kept"
    assert not Path("/dev/shm/of_the_sandbox").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["cache", "run"]


def test_a_socket_of_the_internet_ends_who_asks_and_another_is_refused(folder):
    ended = run(
        folder,
        """
        import os, socket
        print(os.listdir("/run"))
        with socket.socket(socket.AF_UNIX) as local:  # as workers of torch's DataLoader have
            local.bind("tmp/local")
        for family in (socket.AF_VSOCK, socket.AF_NETLINK):
            try:
                socket.socket(family, socket.SOCK_DGRAM)
            except PermissionError:
                print("refused")
        for family in (socket.AF_INET, socket.AF_INET6):
            pid = os.fork()
            if pid == 0:
                socket.socket(family)
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        print(open("/proc/net/dev").read().count(":"))
        """,
    )
    assert ended.stdout.split() == [
        "[]",
        "refused",
        "refused",
        str(-signal.SIGSYS),
        str(-signal.SIGSYS),
        "1",
    ]  # the loopback, which is down


def test_processes_outside_can_be_neither_signalled_nor_looked_into(folder, tmp_path):
    ended = run(
        folder,
        """
        import os, sys
        outside = int(sys.argv[1])
        tries = [lambda: os.kill(outside, 0), lambda: open(f"/proc/{os.getppid()}/fd/1", "w")]
        tries += [lambda name=name: open(f"/proc/{outside}/{name}", "rb").read(1) for name in ("environ", "fd/0", "mem")]
        for do in tries:
            try:
                do()
                print("done")
            except (PermissionError, FileNotFoundError) as error:
                print(type(error).__name__)
        """,
        arguments=[os.getpid()],
    )
    assert ended.stdout.split() == ["PermissionError"] * 5, ended.stderr


def test_no_child_can_print_where_its_script_does(folder):
    ended = run(
        folder,
        """
        import os, subprocess, sys
        tries = "import os, sys; print('verdict'); sys.stdout.flush(); open(f'/proc/{os.getppid()}/fd/{sys.argv[1]}', 'w').write('verdict')"
        for descriptor in range(3, 9):
            subprocess.run([sys.executable, "-c", tries, str(descriptor)])
        print("own words")
        """,
    )
    assert ended.stdout == "own words\n"
    assert ended.stderr.count("PermissionError") + ended.stderr.count("FileNotFoundError") == 6


def test_a_script_that_hangs_is_ended_with_all_that_it_started(folder):
    started = time.monotonic()
    ended = run(
        folder,
        """
        import os, subprocess, sys, time
        daemon = "import os, sys, time\\nos.setsid()\\nif os.fork(): os._exit(0)\\ntime.sleep(600)"
        for _ in range(3):
            subprocess.Popen([sys.executable, "-c", daemon, sys.argv[1]])
        time.sleep(600)
        """,
        Limits(2 << 30, 3.0),
        [folder],
    )
    assert ended.broke == "took more than 3 s"
    assert time.monotonic() - started < 30
    assert processes_of(folder) == []


def test_what_a_script_leaves_running_ends_with_it(folder):
    code = "import time; time.sleep(600)"
    ended = run(folder, f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {code!r}, sys.argv[1]])", arguments=[folder])
    assert (ended.code, ended.broke) == (0, "")
    assert processes_of(folder) == []


@pytest.mark.parametrize("shared", [False, True])
def test_memory_counts_of_all_processes_together(folder, shared):
    """Also what they share, which no limit of a process counts."""
    take = "mmap.mmap(-1, 200 << 20)" if shared else "bytearray(200 << 20)"
    ended = run(
        folder,
        f"""
        import mmap, os, time
        for _ in range(4):
            if os.fork() == 0:
                taken = {take}
                for at in range(0, len(taken), 4096):
                    taken[at] = 1
                time.sleep(60)
        time.sleep(60)
        """,
        Limits(400 << 20, 60.0),
    )
    assert ended.broke == "held more than 0.390625 GiB of memory"
    assert ended.code == -signal.SIGKILL


def test_a_script_ends_with_who_started_it(folder, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time; time.sleep(600)")
    start = f"""
from pathlib import Path
from common.python.processes.sandbox import Limits, run_in_sandbox
run_in_sandbox(Path({str(script)!r}), [{str(folder)!r}], Path({str(folder)!r}), Limits(1 << 30, 60.0))
"""
    with subprocess.Popen([sys.executable, "-c", start], env={**os.environ, "PYTHONPATH": ROOT_FIRST}) as starter:
        while len(processes_of(folder)) < 2:  # the guard and the script
            time.sleep(0.05)
        starter.kill()
    deadline = time.monotonic() + 20
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(folder) == []


def test_exit_codes_and_arguments_are_the_script_s_own(folder):
    ended = run(folder, "import sys; print(sys.argv[1:]); sys.exit(5)", arguments=["a", "b"])
    assert (ended.code, ended.stdout) == (5, "['a', 'b']\n")
    assert "ValueError: no" in run(folder, "raise ValueError('no')").stderr


def test_no_secret_is_in_its_environment():
    found = sandbox_environment(Path("/box"), {"ANTHROPIC_API_KEY": "sk", "HF_TOKEN": "t", "PATH": "/bin", "HOME": "/root"})
    assert "sk" not in found.values()
    assert "t" not in found.values()
    assert (found["PATH"], found["HOME"], found["XDG_CACHE_HOME"]) == ("/bin", "/box/tmp", "/box/cache")


ASK = """
import sys
from common.python.errors import BenchmarkError
from common.python.processes.sandbox import Limits, require_sandbox
try:
    require_sandbox(Limits(1 << 30, 60.0, tuple(sys.argv[1:])))
    print("a sandbox")
except BenchmarkError as error:
    print(error)
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="found no unshare")
@pytest.mark.parametrize(
    ("allowed", "told"),
    [
        ((), "there is no sandbox here (unshare: No space left on device); expected a kernel and a container that let a user have one"),
        (("files",), "there is no sandbox here (unshare: No space left on device)"),
        (("network", "files"), "a sandbox"),
        (RESTRICTIONS, "a sandbox"),
    ],
)
def test_where_no_namespace_may_be_made_a_sentence_says_so(allowed, told):
    """A limit of the kernel stands in for a container without the right."""
    none = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", none, "sh", sys.executable, "-c", ASK, *allowed]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": ROOT_FIRST}, capture_output=True, text=True)
    assert done.stdout.startswith(told), done.stderr
