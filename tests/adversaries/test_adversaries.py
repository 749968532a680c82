"""Every cheat of the table costs its own row, gets its status for the right reason, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from common.python.errors import ExitCode, Status
from common.python.machine.ceilings import kept_ceilings
from common.python.machine.description import describe_machine
from common.python.results import PairResult
from tests.support.commands import ROOT_FIRST, benchmark
from tools.checks.adversaries import FOLDER, cells_of, cheats, complaint, outcome_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytestmark = pytest.mark.slow

MEMORY = 4 << 30  # bytes that a process of the run may ask for, so that a cheat that asks for all there is hurts nobody
ROWS = cheats()
HONEST = ROWS[-1]  # which runs behind the cheats
PENDING = cells_of("Not caught yet")
BELOW_ITS_FLOOR = "first_column"
ON_A_GPU = "test_cheat_gets_its_status_on_a_gpu"


def run(folder, device, rows, *, timeout_multiplier):
    """One run of the real command line over a copy of the cheats: those of `rows` by their names, and its exit code."""
    shutil.copytree(HERE / FOLDER, folder / "tree" / FOLDER, ignore=shutil.ignore_patterns("__pycache__"))
    marked = {
        **os.environ,
        "PYTHONPATH": ROOT_FIRST,
        "TMPDIR": str(folder),  # a lock of its own: nothing that is measured here is kept
        "ADVERSARIES": str(folder),  # by which the run's processes are known
    }
    command = [sys.executable, str(ROOT / "tools/cli/benchmark_cli.py"), "run", "--root", str(folder / "tree"), "--json"]
    command += ["--device", "cuda" if device == "gpu" else device, "--iterations", "6", "--artifacts-dir", str(folder / "run")]
    command += ["--timeout-multiplier", str(timeout_multiplier)]
    command += [word for row in rows for word in ("--targets", f"{FOLDER}:{row.name}")]
    limit = limit_memory if device == "cpu" else None
    done = subprocess.run(command, env=marked, capture_output=True, text=True, timeout=1500, preexec_fn=limit)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)  # and nothing else, whatever a cheat printed
    return {row["target"].removeprefix(f"{FOLDER}:"): row for row in document["rows"]}, done.returncode


def limit_memory():
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """That of all runs on the CPU, by which their processes are known."""
    return tmp_path_factory.mktemp("adversaries")


@pytest.fixture(scope="module")
def timed_run(folder):
    """Those that are told by their times, for which no other test may run, and the honest row behind them."""
    return run(folder / "timed", "cpu", [row for row in of_device("cpu") if is_told_by_time(row) or row == HONEST], timeout_multiplier=0.5)


@pytest.fixture(scope="module")
def cpu_run(folder):
    """All others but the endless ones."""
    rows = [row for row in of_device("cpu") if not (is_told_by_time(row) or is_endless(row))]
    return run(folder / "others", "cpu", rows, timeout_multiplier=0.5)


@pytest.fixture(scope="module")
def endless_run(folder):
    """The endless ones and the honest row behind them: they end sooner than another may on a busy machine."""
    return run(folder / "endless", "cpu", [row for row in of_device("cpu") if is_endless(row) or row == HONEST], timeout_multiplier=0.1)


@pytest.fixture(scope="module")
def chosen(request):
    """The cheats whose tests on a GPU were selected."""
    asked = (item for item in request.session.items if isinstance(item, pytest.Function) and item.originalname == ON_A_GPU)
    names = {item.callspec.params["row"].name for item in asked}
    return [row for row in of_device("gpu") if row.name in names]


@pytest.fixture(scope="module")
def ceilings(tmp_path_factory, chosen):
    """Those of this GPU, measured where none are kept and a cheat needs them: without them no time has a floor."""
    if all(row.name != BELOW_ITS_FLOOR for row in chosen):
        return
    _, why_none = kept_ceilings(describe_machine(ROOT), "cuda")
    if why_none:
        done = benchmark("peak", "--device", "cuda", scratch=tmp_path_factory.mktemp("peak"))
        assert done.code == ExitCode.GOOD, done.stderr


@pytest.fixture(scope="module")
def gpu_run(tmp_path_factory, keep_results, ceilings, chosen):
    folder = tmp_path_factory.mktemp("adversaries")
    found = run(folder, "gpu", chosen, timeout_multiplier=1)
    keep_results(folder / "run")
    return found


def rows_on(device):
    return [pytest.param(row, id=row.name) for row in of_device(device)]


def of_device(device):
    return [row for row in ROWS if row.on in (device, "both")]


def is_told_by_time(row):
    """Whether other tests on this machine may make it look like another."""
    return row.status == Status.IMPLAUSIBLE or (row.status == Status.PASSED and row.says != "-")


def is_endless(row):
    return row.status == Status.TIMEOUT


def rows_on_a_cpu(*, told_by_time):
    return [pytest.param(row, id=row.name) for row in of_device("cpu") if is_told_by_time(row) == told_by_time]


def check(row, found):
    assert complaint(row, outcome_of(PairResult.model_validate(found))) == ""


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", rows_on_a_cpu(told_by_time=True))
def test_cheat_gets_its_status_by_its_time(row, timed_run):
    found, _ = timed_run
    check(row, found[row.name])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", rows_on_a_cpu(told_by_time=False))
def test_cheat_gets_its_status_on_a_cpu(row, request):
    found, _ = request.getfixturevalue("endless_run" if is_endless(row) else "cpu_run")
    check(row, found[row.name])


@pytest.mark.gpu
@pytest.mark.unused_gpu
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", rows_on("gpu"))
def test_cheat_gets_its_status_on_a_gpu(row, gpu_run):
    found, _ = gpu_run
    check(row, found[row.name])


def test_every_other_row_is_fine_whatever_one_does(timed_run, cpu_run, endless_run):
    runs = {"timed": timed_run, "others": cpu_run, "endless": endless_run}
    asked = [row.name for row in of_device("cpu")]
    assert {name for found, _ in runs.values() for name in found} == set(asked)
    for found, _ in runs.values():
        assert len(found) > 1
        assert list(found) == [name for name in asked if name in found]
        assert list(found)[-1] == HONEST.name
        assert found[HONEST.name]["status"] == "PASSED"
    assert {name: code for name, (_, code) in runs.items()} == {
        "timed": ExitCode.WRONG,
        "others": ExitCode.WRONG,  # which outranks a crash
        "endless": ExitCode.BROKEN,
    }


def test_no_process_of_the_run_survives(folder, timed_run, cpu_run, endless_run):
    assert [process for process in psutil.process_iter() if marker_of(process).startswith(str(folder))] == []


def marker_of(process):
    try:
        return process.environ().get("ADVERSARIES", "")
    except psutil.Error:
        return ""


def test_a_survivor_would_be_seen(tmp_path):
    environment = {**os.environ, "ADVERSARIES": str(tmp_path)}
    with subprocess.Popen(["sh", "-c", "echo up; read _"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as survivor:
        survivor.stdout.readline()
        assert marker_of(psutil.Process(survivor.pid)) == str(tmp_path)
        survivor.stdin.close()


def test_every_row_has_a_file_and_every_file_a_row():
    files = [path.stem.removeprefix("optimized_") for path in (HERE / FOLDER).glob("optimized_*")]
    named = [row.name for row in ROWS] + [cells[0] for cells in PENDING]
    assert sorted(named) == sorted(files)


def test_every_row_is_whole():
    cells = cells_of("The table") + PENDING
    assert all(len(row) == 5 and all(row) for row in cells)
    assert {row.on for row in ROWS} | {row[2] for row in PENDING} <= {"cpu", "gpu", "both"}
    limits = [row.says for row in ROWS if row.status == "PASSED" and row.says != "-"]
    assert all(re.fullmatch(r"(baseline|optimized) [<>] \d+ (us|ms|MiB)", limit) for limit in limits)
