"""setup.sh in a folder of its own, with a real venv, and a pip that writes down what it was asked to install."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]

PIP = """\
import os, pathlib, signal, sys, sysconfig
home = pathlib.Path(os.environ["SETUP_TEST"])
with (home / "pip.log").open("a") as log:
    print(*sys.argv[1:], file=log)
if (home / "torch_brings_triton").exists() and any(word.startswith("torch==") for word in sys.argv):
    brought = pathlib.Path(sysconfig.get_path("purelib"), "triton-3.7.1.dist-info")
    brought.mkdir(exist_ok=True)
    (brought / "METADATA").write_text("Metadata-Version: 2.1\\nName: triton\\nVersion: 3.7.1\\n")
if (home / "pip_fails").exists():
    sys.exit("ERROR: found no such package")
if (home / "pip_is_killed").exists():
    os.kill(os.getppid(), signal.SIGKILL)
"""

# Stands for the machine's python3: a venv of it holds the pip above, and, if it sees the machine's packages, the machine's torch.
PYTHON = """\
#!/usr/bin/env bash
set -eu
if [[ -n ${OLD_PYTHON-} && $1 == -c ]]; then exit 1; fi
if [[ $1 != -m ]]; then exec %(python)s "$@"; fi
environment=${*: -1}
%(python)s -m venv --without-pip "${@:3}"
packages=$(echo "$environment"/lib/python*/site-packages)
mkdir -p "$packages/pip"
cp "$SETUP_TEST/pip.py" "$packages/pip/__main__.py"
if [[ -n ${MACHINE_TORCH-} && $* == *--system-site-packages* ]]; then
    echo "$SETUP_TEST/machine" >"$packages/machine.pth"
fi
"""


class Machine:
    """A machine with a copy of the files that setup.sh reads, and what happened there."""

    def __init__(self, home):
        self.home = home
        self.project = home / "project"
        self.project.mkdir()
        for name in ("setup.sh", "pyproject.toml", "constraints.txt"):
            shutil.copy(PROJECT / name, self.project)
        (home / "pip.py").write_text(PIP)
        (home / "bin").mkdir()
        python = home / "bin" / "python3"
        python.write_text(PYTHON % {"python": sys.executable})
        python.chmod(0o755)

    def setup(self, *command, **variables):
        environment = os.environ | {"PATH": f"{self.home}/bin:/usr/bin:/bin", "SETUP_TEST": str(self.home)} | variables
        return subprocess.run(
            [str(self.project / "setup.sh"), *command], env=environment, cwd=self.home, capture_output=True, text=True, timeout=60
        )

    def installed(self):
        log = self.home / "pip.log"
        return log.read_text().splitlines() if log.exists() else []

    def has_torch(self, version):
        folder = self.home / "machine" / f"torch-{version.split('+')[0]}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_first_call_installs_torch_by_its_pin_before_the_project_and_runs_the_command(machine):
    ran = machine.setup("python", "-c", "import sys, os; print(sys.prefix, os.getcwd())")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [str(machine.project / ".venv"), str(machine.home)]
    torch, triton, project, headers = machine.installed()
    assert torch.endswith(" torch==2.13.0")
    assert "--constraint" in torch
    assert triton.endswith(" triton==3.6.0")
    assert project.endswith(f"--editable {machine.project}[dev]")
    assert headers.endswith("--no-deps nvidia-cutlass==4.2.0.0")
    assert "include-system-site-packages = false" in (machine.project / ".venv" / "pyvenv.cfg").read_text()


def test_the_triton_that_torch_brings_is_kept(machine):
    """PyPI's torch for GPUs takes one version of triton alone: pip refuses it beside another pin."""
    (machine.home / "torch_brings_triton").touch()
    assert machine.setup("true").returncode == 0
    torch, project, _ = machine.installed()
    assert torch.endswith(" torch==2.13.0")
    assert project.endswith("[dev]")
    assert "triton==" not in (machine.project / ".venv" / "constraints.txt").read_text()


def test_second_call_installs_nothing_and_starts_at_once(machine):
    machine.setup("true")
    before = machine.installed()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        assert machine.setup("true").stderr == ""
        seconds.append(time.perf_counter() - start)
    assert machine.installed() == before
    assert min(seconds) < 0.3


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_requirement_is_installed(machine, name):
    machine.setup("true")
    before = len(machine.installed())
    with (machine.project / name).open("a") as file:
        file.write("# changed\n")
    assert machine.setup("true").returncode == 0
    assert len(machine.installed()) > before


def test_an_interrupted_installation_is_started_over(machine):
    kill = machine.home / "pip_is_killed"
    kill.touch()
    assert machine.setup("true").returncode != 0
    (machine.project / ".venv" / "half_written").touch()
    kill.unlink()
    assert machine.setup("true").returncode == 0
    assert not (machine.project / ".venv" / "half_written").exists()
    assert len(machine.installed()) == 5  # one that was killed, and all four again


def test_a_failing_installation_shows_what_pip_said_and_runs_nothing(machine):
    (machine.home / "pip_fails").touch()
    ran = machine.setup("echo", "ran")
    assert ran.returncode == 1
    assert "found no such package" in ran.stderr
    assert "ran" not in ran.stdout


def test_a_moved_checkout_gets_a_new_environment(machine):
    machine.setup("true")
    (machine.project / ".venv" / "of_the_old_place").touch()
    machine.project = machine.project.rename(machine.home / "moved")
    ran = machine.setup("python", "-c", "import sys; print(sys.prefix)")
    assert ran.stdout.strip() == str(machine.home / "moved" / ".venv")
    assert not (machine.project / ".venv" / "of_the_old_place").exists()


def test_an_environment_that_someone_else_made_is_kept(machine):
    subprocess.run(
        [machine.home / "bin" / "python3", "-m", "venv", machine.project / ".venv"],
        env=os.environ | {"SETUP_TEST": str(machine.home)},
        check=True,
    )
    (machine.project / ".venv" / "mine").touch()
    assert machine.setup("true").returncode == 0
    assert (machine.project / ".venv" / "mine").exists()


def test_a_torch_that_the_machine_brings_is_kept(machine):
    machine.has_torch("2.11.0+cu130")
    ran = machine.setup("true", MACHINE_TORCH="yes")
    assert ran.returncode == 0, ran.stderr
    project, _ = machine.installed()
    assert project.endswith("[dev]")
    assert "keeping this machine's torch==2.11.0+cu130" in ran.stderr
    pins = (machine.project / ".venv" / "constraints.txt").read_text().splitlines()
    assert [pin for pin in pins if pin.startswith("torch==")] == ["torch==2.11.0+cu130"]
    assert "include-system-site-packages = true" in (machine.project / ".venv" / "pyvenv.cfg").read_text()


def test_a_torch_that_is_too_old_is_not_kept(machine):
    machine.has_torch("2.9.1+cu126")
    assert machine.setup("true", MACHINE_TORCH="yes").returncode == 0
    assert machine.installed()[0].endswith(" torch==2.13.0")
    assert "include-system-site-packages = false" in (machine.project / ".venv" / "pyvenv.cfg").read_text()


def test_an_old_python_is_refused_in_one_line(machine):
    ran = machine.setup("true", OLD_PYTHON="yes")
    assert ran.returncode == 1
    assert "expected Python 3.11 or newer" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_without_a_command_it_says_what_to_try(machine):
    ran = machine.setup()
    assert ran.returncode == 0
    assert "./setup.sh benchmark_cli run --targets ch01" in ran.stdout


def test_an_unknown_option_is_refused_before_anything_is_made(machine):
    ran = machine.setup("--sytem")
    assert (ran.returncode, ran.stderr) == (1, "setup: found --sytem; expected a command to run, --system or --help\n")
    assert not (machine.project / ".venv").exists()


@pytest.mark.parametrize(
    ("release", "repository"),
    [("ID=ubuntu\nVERSION_ID=24.04\n", "/ubuntu2404/x86_64/"), ("ID=debian\nVERSION_ID=12\n", "/debian12/x86_64/")],
)
def test_system_prints_the_commands_of_this_distribution_and_runs_none(machine, release, repository):
    as_if_on(machine, release)
    ran = machine.setup("--system")
    assert ran.returncode == 0, ran.stderr
    assert repository in ran.stdout
    for package in ("cuda-toolkit-13-0", "cuda-nsight-systems-13-0", "cuda-nsight-compute-13-0"):
        assert package in ran.stdout
    assert not (machine.project / ".venv").exists()


def test_system_refuses_a_distribution_it_does_not_know(machine):
    as_if_on(machine, "ID=slackware\nVERSION_ID=15.0\nPRETTY_NAME='Slackware 15.0'\n")
    ran = machine.setup("--system", "--yes")
    assert ran.returncode == 1
    assert "found Slackware 15.0 on x86_64; expected Ubuntu 22.04 or 24.04" in ran.stderr


def test_system_refuses_anyone_but_root(machine):
    as_if_on(machine, "ID=debian\nVERSION_ID=12\n", root=False)
    ran = machine.setup("--system", "--yes")
    assert ran.returncode == 1
    assert "expected root" in ran.stderr


def as_if_on(machine, release, *, root=True):
    """Points the copy of setup.sh at another distribution's file, and at an x86_64 machine."""
    (machine.home / "os-release").write_text(release)
    script = machine.project / "setup.sh"
    text = script.read_text().replace("os_release=/etc/os-release", f"os_release={machine.home}/os-release")
    script.write_text(text.replace("$EUID", "0" if root else "1000"))
    uname = machine.home / "bin" / "uname"
    uname.write_text("#!/bin/sh\necho x86_64\n")
    uname.chmod(0o755)
