"""Whatever a side does costs its own process and a sentence; the harness, the fork server and the next child do not notice."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.description import child_environment
from common.python.processes import messages
from common.python.processes.fork_server import ForkServer, _signal_group
from common.python.project import PROJECT_ROOT
from tests.support.commands import left_of, loaded_worker


@pytest.fixture
def side(server, tmp_path):
    """A worker that has loaded a baseline of the given source; it is closed when the test is over."""
    opened = []

    def started(source, *, core=-1):
        child, _ = loaded_worker(server, tmp_path, source, core)
        opened.append(child)
        return child

    yield started
    for child in opened:
        child.close()


HONEST = '"""Baseline."""\n\ndef prepare(x):\n    return lambda: x * 2\n'


def prepare(child, seconds=30.0):
    return child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2), messages.Prepared, seconds)


def check(child, folder, seconds=30.0):
    prepare(child)
    return child.ask(messages.Check(seeds=[5], prefix=str(folder / "dump")), messages.Checked, seconds)


def processes_of(child):
    return [psutil.Process(child.pid), *psutil.Process(child.pid).children(recursive=True)]


def server_of(child):
    return psutil.Process(child.pid).ppid()


def failure_of(function, *arguments):
    with pytest.raises(SideFailure) as caught:
        function(*arguments)
    return caught.value


ENDINGS = {
    "a segmentation fault": ("import ctypes; ctypes.string_at(0)", "the prepare process was killed by SIGSEGV; expected an answer"),
    "an abort": ("import os; os.abort()", "the prepare process was killed by SIGABRT"),
    "a kill": ("import os; os.kill(os.getpid(), 9)", "the prepare process was killed by SIGKILL"),
    "an exit": ("import os; os._exit(3)", "the prepare process ended with exit code 3 before it answered"),
    "closed descriptors": ("import os; os.closerange(3, 1000)", "the prepare process ended with exit code 1 before it answered"),
    "last words": ("import os; print('goodbye'); os._exit(1)", "(its last output: goodbye)"),
    "an exception": ("raise ValueError('x is\\nodd')", "baseline_double.py:4: raised ValueError: x is odd; expected no exception"),
    "sys.exit": ("import sys; sys.exit('enough')", "baseline_double.py:4: raised SystemExit: enough"),
    "Ctrl-C": ("raise KeyboardInterrupt", "baseline_double.py:4: raised KeyboardInterrupt"),
    "endless recursion": ("return prepare(x)", "baseline_double.py:4: raised RecursionError"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_side_that_ends_is_crashed_and_the_next_one_works(side, tmp_path, ending):
    code, sentence = ENDINGS[ending]
    failure = failure_of(prepare, side(f'"""Baseline."""\n\ndef prepare(x):\n    {code}\n'))
    assert failure.status is Status.CRASHED
    assert sentence in failure.reason
    assert "\n" not in failure.reason
    assert len(check(side(HONEST), tmp_path).calls) == 1


def test_a_crash_leaves_the_fork_server_and_the_terminal_alone(side, capfd):
    child = side('"""Baseline."""\nimport os\n\ndef prepare(x):\n    os._exit(3)\n')
    server = server_of(child)
    failure_of(prepare, child)
    assert server_of(side(HONEST)) == server
    assert capfd.readouterr() == ("", "")


def test_an_allocation_that_fails_is_out_of_memory(side, tmp_path):
    child = side('"""Baseline."""\nimport torch\n\ndef prepare(x):\n    return lambda: torch.empty(1 << 50)\n')
    failure = failure_of(check, child, tmp_path)
    assert failure.status is Status.OUT_OF_MEMORY
    assert failure.reason.startswith("baseline_double.py:5: raised RuntimeError")


def test_a_cpu_side_cannot_take_the_memory_of_the_machine(side, tmp_path):
    hoard = '"""Baseline."""\nimport torch\n\ndef prepare(x):\n    return lambda: [torch.ones(1 << 28) for _ in range(1 << 20)]\n'
    limits = side(hoard, core=max(os.sched_getaffinity(0)))
    soft, _ = psutil.Process(limits.pid).rlimit(psutil.RLIMIT_DATA)
    assert 0 < soft < psutil.virtual_memory().total


def test_a_side_that_hangs_is_stopped_at_its_limit(side):
    child = side('"""Baseline."""\n\ndef prepare(x):\n    while True:\n        pass\n')
    family = processes_of(child)
    begin = time.monotonic()
    failure = failure_of(prepare, child, 0.3)
    assert time.monotonic() - begin < 5
    assert failure.status is Status.TIMEOUT
    assert failure.reason == "prepare took more than 0.3 s; expected an answer by then"
    assert left_of(family) == []


NOISY = '''"""Baseline: prints, and writes to every descriptor it was not given."""
import os, sys
print("on import")

def prepare(x):
    def step():
        print("in step")
        os.write(1, b"to one\\n")
        os.write(2, b"to two\\n")
        return x * 2
    return step
'''


def test_what_a_side_prints_goes_to_its_log(side, tmp_path, capfd):
    assert len(check(side(NOISY), tmp_path).calls) == 1
    log = (tmp_path / "log.txt").read_text()
    assert all(words in log for words in ("on import", "in step", "to one", "to two"))
    assert capfd.readouterr() == ("", "")


FORGER = '''"""Baseline: finds the harness's socket and answers in its place."""
import os, stat, struct

def prepare(x):
    body = b'{"kind": "prepared", "nonce": "0000", "seconds": 0.0}'
    for descriptor in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.write(descriptor, struct.pack("!I", len(body)) + body)
        except OSError:
            pass
    return lambda: x
'''


def test_an_answer_that_a_side_forges_is_not_taken(side):
    failure = failure_of(prepare, side(FORGER))
    assert failure.status is Status.CRASHED
    assert failure.reason.startswith("something wrote on the harness's socket: found an answer with nonce '0000'; expected ")


STARTER = '''"""Baseline: starts a thread and a process that outlive it."""
import atexit, subprocess, threading, time

def prepare(x):
    atexit.register(time.sleep, 60)
    threading.Thread(target=time.sleep, args=(60,)).start()
    subprocess.Popen(["sleep", "60"])
    return lambda: x * 2
'''


def test_nothing_that_a_side_starts_outlives_it(side):
    child = side(STARTER)
    prepare(child)
    family = processes_of(child)
    assert len(family) == 2
    begin = time.monotonic()
    child.close()
    assert left_of(family) == []
    assert time.monotonic() - begin < 4


CLOSER = '''"""Baseline: has something to close."""
from pathlib import Path

def prepare(x):
    yield lambda: x * 2
    Path(__file__).with_name("closed").touch()
'''


def test_a_side_that_yields_its_step_is_closed_in_the_end(side, tmp_path):
    child = side(CLOSER)
    prepare(child)
    assert not (tmp_path / "demo/closed").exists()
    child.close()
    assert (tmp_path / "demo/closed").exists()


def test_a_child_that_is_closed_stays_closed(side):
    child = side(HONEST)
    child.close()
    child.close()
    child.kill()
    assert not psutil.pid_exists(child.pid)


def test_a_server_that_is_killed_costs_the_children_it_had_and_no_other(server, tmp_path):
    before = server.fork("describer", tmp_path / "log.txt")
    family = psutil.Process(before.pid)
    psutil.Process(server_of(before)).kill()
    assert left_of([family]) == []
    failure = failure_of(before.ask, messages.Probe(), messages.Probed, 10)
    assert failure.status is Status.CRASHED
    assert failure.reason.startswith("the probe process died together with the process that forked it; expected an answer")
    with server.fork("describer", tmp_path / "log.txt") as after:
        assert after.ask(messages.Probe(), messages.Probed, 10).torch


def test_a_child_that_another_stopped_before_it_made_its_group_goes_on():
    with subprocess.Popen(["sleep", "60"]) as child:
        process = psutil.Process(child.pid)
        states = []
        for number in (signal.SIGSTOP, signal.SIGCONT):
            _signal_group(child.pid, number)
            time.sleep(0.2)
            states.append(process.status() == psutil.STATUS_STOPPED)
        _signal_group(child.pid, signal.SIGKILL)
        assert child.wait(10) == -signal.SIGKILL
    assert states == [True, False]


def test_a_child_whose_parent_has_ended_before_it_could_ask_for_the_signal_ends_too():
    program = """
import os
from common.python.child.server import die_with_parent

for other in (0, 1):
    if os.fork() == 0:
        die_with_parent(os.getppid() + other)
        print("lives", flush=True)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
    told = subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["lives", "0", "1"]


def test_the_server_ignores_the_terminals_interrupt_and_ends_with_its_owner(tmp_path):
    server = ForkServer(child_environment(PROJECT_ROOT, "cpu"))
    child = server.fork("describer", tmp_path / "log.txt")
    family = [psutil.Process(server_of(child)), psutil.Process(child.pid)]
    family[0].send_signal(signal.SIGINT)
    assert child.ask(messages.Probe(), messages.Probed, 10).torch
    server.stop()
    assert left_of(family) == []
    child.close()


def test_ctrl_c_between_a_question_and_its_answer_leaves_the_server_usable(server, tmp_path, monkeypatch):
    """The answer to the interrupted question is still on its way when the next one is asked."""
    child = server.fork("describer", tmp_path / "log.txt")
    connection = SimpleNamespace(send=server._connection.send, receive=server._connection.receive, socket=server._connection.socket)

    def interrupted(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(server, "_connection", connection)
        patch.setattr(connection, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.fork("describer", tmp_path / "log.txt")
    child.close()
    with server.fork("describer", tmp_path / "log.txt") as after:
        assert after.ask(messages.Probe(), messages.Probed, 10).torch


def test_a_server_that_cannot_start_is_one_sentence(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    environment = child_environment(PROJECT_ROOT, "cpu")
    with (
        ForkServer({**environment, "PYTHONPATH": f"{tmp_path}:{environment['PYTHONPATH']}"}) as server,
        pytest.raises(BenchmarkError, match=r"the process that forks children ended as it started; expected .* to import torch"),
    ):
        server.fork("worker", tmp_path / "log.txt")


COUNTING = (
    '"""Baseline."""\nimport os\nfrom pathlib import Path\n\ndef prepare(x):\n    def step():\n'
    "        with open(Path(__file__).with_name('calls'), 'a') as calls:\n            print(x.data_ptr(), file=calls)\n"
    "        return x * 2\n    return step\n"
)


def test_every_copy_has_been_called_before_any_is_timed(side, tmp_path):
    child, calls = side(COUNTING), tmp_path / "demo/calls"
    child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2), messages.Prepared, 30)
    assert not calls.exists()  # a side that is checked has its first call judged
    child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2, copies=3), messages.Prepared, 30)
    assert len(set(calls.read_text().split())) == len(calls.read_text().split()) == 3


@pytest.mark.parametrize(("copies", "each"), [(4, 1), (4, 2), (1, 1)])
def test_what_is_picked_is_of_the_copy_that_was_called_on_the_inputs_of_its_seed(side, tmp_path, copies, each):
    child = side(HONEST)
    child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2, copies=copies), messages.Prepared, 30)
    warm = messages.Warm(seed=7, calls=2, seconds=1.0, hold=False, calls_per_sample=each)
    child.ask(warm, messages.Warmed, 30)
    picks = [0, 3 * each - 1]
    time = messages.Time(seed=100, count=3, picks=picks, prefix=str(tmp_path / "timed"), hold=False, sustained=False)
    timed = child.ask(time, messages.Timed, 30)
    dumps = [[(tmp_path / dump.path).read_bytes() for dump in call.outputs] for call in timed.picks]
    assert [call.seed for call in timed.picks] == [100 + pick for pick in picks]
    prepare(child)
    checked = child.ask(messages.Check(seeds=[100 + pick for pick in picks], prefix=str(tmp_path / "checked")), messages.Checked, 30)
    assert [call.digest for call in timed.picks] == [call.digest for call in checked.calls]
    assert dumps == [[(tmp_path / dump.path).read_bytes() for dump in call.outputs] for call in checked.calls]
    assert dumps[0] != dumps[1]
