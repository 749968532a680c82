"""A test that must be alone waits until no other runs, and none begins while it waits or runs; one that needs an unused GPU goes first.

Several processes share the tests of all pairs.
"""

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest

from tests.conftest import turn
from tests.support.commands import ROOT, ROOT_FIRST


class Log:
    """What each of some threads did, in order."""

    def __init__(self, folder):
        self._folder, self.lines, self._threads = folder, [], []

    def start(self, name, until, *, alone):
        def work():
            with turn(self._folder, alone=alone):
                self.lines.append(f"{name} begins")
                until.wait(10)
                self.lines.append(f"{name} ends")

        thread = threading.Thread(target=work)
        thread.start()
        self._threads.append(thread)
        time.sleep(0.1)  # so that the next one comes after it

    def join(self):
        for thread in self._threads:
            thread.join(10)
        return self.lines


def test_others_run_side_by_side(tmp_path):
    log, end = Log(tmp_path), threading.Event()
    log.start("one", end, alone=False)
    log.start("two", end, alone=False)
    assert log.lines == ["one begins", "two begins"]
    end.set()
    log.join()


def test_one_that_must_be_alone_is_and_nobody_gets_past_it(tmp_path):
    log, first, rest = Log(tmp_path), threading.Event(), threading.Event()
    rest.set()
    log.start("one", first, alone=False)
    log.start("alone", rest, alone=True)
    log.start("two", rest, alone=False)
    assert log.lines == ["one begins"]
    first.set()
    assert log.join() == ["one begins", "one ends", "alone begins", "alone ends", "two begins", "two ends"]


def run_by_two_processes(folder):
    """The tests of a folder, under this project's conftest.py."""
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone\n    gpu\n    slow\n    unused_gpu\n")
    shutil.copy(ROOT / "tests/conftest.py", folder)
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-q", "-n2", "--dist=loadfile", "--import-mode=importlib", "."]
    subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": ROOT_FIRST}, capture_output=True, text=True, check=True)


WRITES = """import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({count}))
{mark}
def test_it(number):
    with Path("ran.txt").open("a") as file:
        print("{name} begins", file=file, flush=True)
        time.sleep(0.05)
        print("{name} ends", file=file, flush=True)
"""


def test_those_of_a_process_that_must_be_alone_go_one_after_the_other_in_one_turn(tmp_path):
    for name, count, mark in (("alone", 5, "@pytest.mark.alone"), ("other", 20, ""), ("last", 2, "")):
        (tmp_path / f"test_{name}.py").write_text(WRITES.format(name=name, count=count, mark=mark))
    run_by_two_processes(tmp_path)
    ran = (tmp_path / "ran.txt").read_text().splitlines()
    first = ran.index("alone begins")
    assert ran[first : first + 10] == ["alone begins", "alone ends"] * 5
    assert len(ran) == 2 * (5 + 20 + 2)  # the others get their turn too


THREADS = """import os
from pathlib import Path

import torch


def test_it():
    assert torch.get_num_threads() == max(1, len(os.sched_getaffinity(0)) // 2)
    torch.ones(1 << 20).sum()
"""


def test_torch_has_a_processs_part_of_the_cores(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(THREADS)
    run_by_two_processes(tmp_path)


ONE_OF_MANY = """import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({count}))
{mark}
def test_it(number):
    with Path("ran.txt").open("a") as file:
        print("{name}", os.getpid(), file=file)
"""


def test_a_process_begins_with_the_tests_that_take_longest(tmp_path):
    for name, count, mark in (("many", 12, ""), ("more", 15, ""), ("slow", 1, "@pytest.mark.slow")):
        (tmp_path / f"test_{name}.py").write_text(ONE_OF_MANY.format(name=name, count=count, mark=mark))
    run_by_two_processes(tmp_path)
    ran = [line.split() for line in (tmp_path / "ran.txt").read_text().splitlines()]
    (process,) = {process for name, process in ran if name == "slow"}
    assert len(ran) == 12 + 15 + 1
    assert next(name for name, each in ran if each == process) == "slow"


USES = """import pytest

pytestmark = pytest.mark.gpu


def test_one(): ...


@pytest.mark.unused_gpu
def test_two(): ...
"""


def test_what_needs_a_gpu_that_nobody_uses_goes_before_what_uses_it_in_this_process(tmp_path):
    """Among tests of two files, with this project's own conftest.py."""
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu\n    unused_gpu\n")
    for name in ("a", "b"):
        (tmp_path / f"test_{name}.py").write_text(USES)
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--collect-only", "-q", "-n0", "--import-mode=importlib", "."]
    found = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT_FIRST}, capture_output=True, text=True, check=True)
    named = [line for line in found.stdout.splitlines() if "::" in line]
    assert named == ["test_a.py::test_two", "test_b.py::test_two", "test_a.py::test_one", "test_b.py::test_one"]


NAMES_ITS_PROCESS = """import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("target", [f"{{chapter}}:{{pair}}-optimized" for chapter in {parts} for pair in range({pairs})])
def test_side(target):
    with Path("ran.txt").open("a") as file:
        print(Path(__file__).parent.name, target.split(":")[0], os.getpid(), file=file)
"""


@pytest.mark.parametrize("parts", [("ch01", "ch02"), ("labs/a", "labs/b")])
def test_processes_share_a_file_about_all_pairs_by_chapter_and_lab_and_no_other(parts, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    gpu\n    unused_gpu\n")
    for folder, pairs in {"pairs": 9, "tools": 3}.items():  # each of two processes begins with one of the longest parts
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_all.py").write_text(NAMES_ITS_PROCESS.format(parts=parts, pairs=pairs))
    shutil.copy(ROOT / "tests/conftest.py", tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-q", "-n2", "--dist=loadfile", "--import-mode=importlib", "tests"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ROOT_FIRST}, capture_output=True, text=True, check=True)
    ran = {tuple(line.split()) for line in (tmp_path / "ran.txt").read_text().splitlines()}
    process_of = {(folder, chapter): process for folder, chapter, process in ran}
    assert len(process_of) == len(ran)  # a chapter is not torn apart
    assert process_of["pairs", parts[0]] != process_of["pairs", parts[1]]
    assert process_of["tools", parts[0]] == process_of["tools", parts[1]]
