"""Processes under a tool that wait for their job: what they do till then and what ends them, and when ncu's process of a row starts."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from common.python.machine.description import child_environment
from common.python.processes.profile_job import Job, JobSide
from common.python.profile import runner
from common.python.profile.runner import profile_row
from common.python.profile.tools import Ended, JobProcess, SideCrashed, ToolFailed
from common.python.project import PROJECT_ROOT
from tests.support.commands import OPTIMIZED
from tests.support.profiled import a_pair, a_session, put_on_path

LIMIT_S = 120.0
BETWEEN = ("sh", "-c", '"$@"; exit $?', "sh")  # a tool whose program is a process of its own
ENDLESS = ("sh", "-c", "sleep 600", "sh")
CRASHING = '"""Optimized."""\n\nimport os\n\n\ndef prepare(x):\n    os._exit(9)\n'


def eventually(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def waiting(log, parent=None):
    """A process below `parent` that has come so far as to ask for the job that belongs to `log`."""
    found = []

    def asks():
        for process in psutil.Process(parent).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if str(log.with_suffix(".job.json")) in {file.path for file in process.open_files()}:
                    found.append(process)
        return found

    eventually(asks)
    return found[0]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "tool.log"


@pytest.fixture
def start(log):
    """Starts a process under a tool, for jobs on the CPU."""
    return lambda under=BETWEEN: JobProcess(under, log, child_environment(PROJECT_ROOT, "cpu"))


@pytest.fixture
def job(tmp_path):
    """A step of demo:double's optimized side, which leaves a file when it is loaded, or is what is given."""

    def make(optimized=None):
        loud = OPTIMIZED.replace("def prepare", f"open({str(tmp_path / 'loaded')!r}, 'w').close()\n\n\ndef prepare", 1)
        plan = a_pair(tmp_path, optimized=optimized or loud)
        files = {"workload": str(plan.selection.pair.workload), "side": str(plan.file("optimized")), "library": ""}
        side = JobSide(label="ch07:double/optimized", shapes=[{"n": 512}], **files)
        inputs = tmp_path / "inputs"
        inputs.mkdir()
        told = {"progress": str(tmp_path / "progress.txt"), "log": str(tmp_path / "program.log")}
        return Job(mode="bracket", device="cpu", seed=7, folder=str(inputs), sides=[side], **told)

    return make


def test_a_process_that_waits_has_imported_torch_and_touched_neither_a_gpu_nor_a_side(start, job, log, tmp_path):
    told = job()
    with start() as process:
        child = waiting(log)
        assert any("libtorch" in mapped.path for mapped in child.memory_maps())
        opened = [link.readlink() for link in Path(f"/proc/{child.pid}/fd").iterdir()]
        assert not any(str(file).startswith("/dev/nvidia") for file in opened)
        assert not (tmp_path / "loaded").exists()
        assert not Path(told.progress).exists()
        assert process.do(told, LIMIT_S).code == 0
    assert (tmp_path / "loaded").exists()
    assert Path(told.progress).read_text() == "done"


def test_a_process_that_is_given_no_job_is_ended_and_leaves_no_file_of_one(start, log):
    with start():
        child = waiting(log)
    eventually(lambda: ended(child))
    assert not log.with_suffix(".job.json").exists()


def test_ctrl_c_ends_a_process_that_waits(start, log):
    children = []

    def interrupted():
        with start():
            children.append(waiting(log))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    eventually(lambda: ended(children[0]))


def test_a_process_whose_job_nobody_is_left_to_give_ends_by_itself(log):
    holding = (
        "import os, pathlib, sys, time\nfrom common.python.profile.tools import JobProcess\n"
        "process = JobProcess((), pathlib.Path(sys.argv[1]), os.environ)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", holding, str(log)], env=child_environment(PROJECT_ROOT, "cpu")) as holder:
        try:
            child = waiting(log, holder.pid)
        finally:
            holder.kill()
    eventually(lambda: ended(child))
    assert log.read_text() == ""


def test_the_limit_counts_from_the_job_not_from_the_start(start, job):
    with start(ENDLESS) as process:
        time.sleep(1.0)
        given = time.monotonic()
        with pytest.raises(ToolFailed, match=r"^took more than 0\.5 s; expected it to end by then \(--timeout-multiplier\)$"):
            process.do(job(), limit_s=0.5)
        assert time.monotonic() - given >= 0.5


def test_a_side_that_crashes_once_it_is_given_is_named(start, job):
    with start() as process, pytest.raises(SideCrashed, match="exit code 9 preparing optimized"):
        process.do(job(CRASHING), LIMIT_S)


def test_a_tool_that_cannot_start_leaves_no_file_of_a_job(start, log):
    with pytest.raises(ToolFailed, match=r"^no_such_tool: No such file or directory; expected to start it$"):
        start(("no_such_tool",))
    assert not log.with_suffix(".job.json").exists()


# --- ncu of a row


@pytest.fixture
def profiled(tmp_path, monkeypatch):
    """Profiles ch07:double with the stand-ins in `mode`, whose nsys ends only when ncu has started if that is "beside"."""

    def profile(mode="beside", choices=None, program="skip", **changes):
        put_on_path(monkeypatch, "nsys", "ncu", folder=tmp_path / "tools", mode=mode, program=program)
        session = a_session(tmp_path / "run", limit_s=LIMIT_S, **choices or {"profile": "minimal"})
        return profile_row(a_pair(tmp_path, **changes), session)

    return profile


@pytest.fixture
def order(tmp_path):
    """What the stand-ins did one after another, and the process ids of those called ncu."""

    def read():
        lines = (tmp_path / "run" / "ch07_double" / "order.txt").read_text().splitlines()
        did = [line.rpartition(" ")[0] for line in lines]
        return did, [int(line.rpartition(" ")[2]) for line in lines if line.startswith("ncu")]

    return read


def test_ncu_has_started_when_nsys_ends_and_has_its_job_after_that(profiled, order):
    assert set(profiled().counters) == {"baseline", "optimized"}
    assert order()[0] == ["ncu starts", "nsys ends", "ncu has its job"]


def test_a_side_that_crashes_under_nsys_ends_ncu_which_was_never_given_a_job(profiled, order, tmp_path):
    found = profiled(program="run", optimized=CRASHING)
    assert [note.startswith("profile: the process ended with exit code 9 preparing optimized") for note in found.notes] == [True]
    did, (ncu,) = order()
    assert did == ["ncu starts", "nsys ends"]
    assert not psutil.pid_exists(ncu)
    assert not (tmp_path / "run" / "ch07_double" / "profile_ncu.job.json").exists()


def test_ctrl_c_under_nsys_ends_ncu(profiled, order):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            profiled("interrupt")
    finally:
        signal.signal(signal.SIGINT, before)
    did, (ncu,) = order()
    assert did == ["ncu starts"]
    assert not psutil.pid_exists(ncu)


def test_where_no_side_can_be_counted_ncu_is_ended(profiled, order, monkeypatch):
    monkeypatch.setattr(runner, "_MOST_KERNELS", 0)
    assert profiled().counters == {}
    did, (ncu,) = order()
    assert did == ["ncu starts", "nsys ends"]
    assert not psutil.pid_exists(ncu)


def test_where_nsys_gives_nothing_the_ncu_that_waits_counts_after_torch_profiler(profiled, order, monkeypatch):
    def traced_at_once(under, job, *_):
        for side in job.sides:
            event = {"ph": "X", "cat": "user_annotation", "name": side.label, "ts": 1.0, "dur": 2.5}
            Path(side.trace).write_text(json.dumps({"traceEvents": [event]}))
        return Ended(0, "")

    monkeypatch.setattr(runner, "run_job", traced_at_once)
    found = profiled("importer")
    assert (found.of("baseline").step.source, set(found.counters)) == ("torch.profiler", {"baseline", "optimized"})
    did, _ = order()
    assert sorted(did) == ["ncu has its job", "ncu starts", "nsys ends"]
    assert did.index("nsys ends") < did.index("ncu has its job")


def test_a_level_of_none_starts_no_ncu(profiled, order):
    profiled("", choices={"profile": "none"})
    assert order()[0] == ["nsys ends"]


def test_on_a_cpu_no_tool_is_started(profiled, tmp_path):
    assert profiled(device="cpu").of("baseline").step.source == "torch.profiler"
    assert not (tmp_path / "run" / "ch07_double" / "order.txt").exists()


def test_an_ncu_that_refuses_counters_is_run_once_more(profiled, order):
    profiled("refuse", choices={"profile": "roofline"})
    assert [what for what in order()[0] if what.startswith("ncu")] == ["ncu starts", "ncu has its job"] * 2
