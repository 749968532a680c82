"""A run that was started under a profiler: its children are programs of their own, which nsys follows, and no stream is held."""

import subprocess
from pathlib import Path

import pytest

from common.python.build.nvcc import find_nvcc
from common.python.machine.description import child_environment, profiler_attached
from common.python.processes import messages
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT
from tests.support.commands import benchmark, write_pair
from tests.support.probes import needs_nvcc

LISTENER = Path(__file__).with_name("nvtx_listener.c")


@pytest.mark.parametrize(
    ("variables", "attached"),
    [
        ({}, False),
        ({"CUDA_INJECTION64_PATH": ""}, False),
        ({"CUDA_VISIBLE_DEVICES": "0", "NVTX_VERSION": "3"}, False),
        ({"CUDA_INJECTION64_PATH": "/opt/nvidia/libToolsInjection64.so"}, True),
        ({"NSYS_PROFILING_SESSION_ID": "7"}, True),
        ({"NV_NSIGHT_INJECTION_TRANSPORT_TYPE": "1"}, True),
    ],
)
def test_a_profiler_shows_by_its_variables(variables, attached):
    assert profiler_attached(variables) is attached


def command_line(server, tmp_path):
    """That of a child which has answered."""
    with server.fork("describer", tmp_path / "log.txt") as child:
        child.ask(messages.Probe(), messages.Probed, 60)
        return Path(f"/proc/{child.pid}/cmdline").read_bytes().split(b"\0")


def test_under_a_profiler_a_child_starts_anew_and_answers(tmp_path):
    with ForkServer(child_environment(PROJECT_ROOT, "cpu") | {"NSYS_PROFILING_SESSION_ID": "7"}) as profiled:
        *_, descriptor, role, _ = command_line(profiled, tmp_path)
    assert (descriptor.isdigit(), role) == (True, b"describer")


def test_without_one_it_is_a_fork_of_the_server(server, tmp_path):
    assert b"describer" not in command_line(server, tmp_path)


@pytest.fixture
def ranges(tmp_path, monkeypatch):
    """Runs a small pair under a tool that keeps ranges until a process ends: the processes in which each began, by its name."""
    library, heard = tmp_path / "listener.so", tmp_path / "heard.txt"
    subprocess.run([find_nvcc(), "-shared", "-Xcompiler=-fPIC", "-o", library, LISTENER], check=True)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(library))
    monkeypatch.setenv("NVTX_LISTENER", str(heard))
    write_pair(tmp_path / "root")
    words = ["run", "--root", tmp_path / "root", "--device", "cpu", "--iterations", "2", "--artifacts-dir", tmp_path / "run"]
    assert (finished := benchmark(*words, scratch=tmp_path)).code == 0, finished
    found = {}
    for line in heard.read_text().splitlines():
        process, _, name = line.partition(" ")
        found.setdefault(name, set()).add(process)
    return found


@pytest.mark.slow  # every process imports torch anew
@needs_nvcc
def test_the_ranges_of_all_processes_reach_it(ranges):
    parent = ranges["demo:double"]
    assert len(parent) == 1
    assert all(ranges[phase] == parent for phase in ("build", "prove", "verify", "measure"))
    baseline, optimized = (ranges[f"{side}_double/step"] for side in ("baseline", "optimized"))
    assert min(len(baseline), len(optimized)) >= 2, "a fresh process for each unit"
    assert not baseline & optimized
    assert not (baseline | optimized) & parent
