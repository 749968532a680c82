"""The profilers themselves on a GPU: what they tell of a pair, and that what each way to fail costs is its own figures, in one line."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from common.python.machine.description import find_tool
from common.python.machine.doctor import importer_lacks
from common.python.profile.nsys import NsysDatabase
from tests.common.python.prove.test_collect import rows_of
from tests.support.commands import OPTIMIZED, benchmark, write_pair

NSYS, NCU = find_tool("nsys"), find_tool("ncu")
pytestmark = [pytest.mark.gpu, pytest.mark.unused_gpu, pytest.mark.skipif(not (NSYS and NCU), reason="nsys or ncu is missing")]

CRASHES = OPTIMIZED.replace("def prepare(x):\n", "import os, sys\n\ndef prepare(x):\n    'profiled' in sys.argv[0] and os._exit(3)\n")
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")


@pytest.fixture
def profiled(tmp_path):
    """A small pair, run with a profile: the row, which always passes with its timing, and the folder of its files."""

    def run(under=(), **pair):
        write_pair(tmp_path / "root", **pair)
        words = ["run", "--root", tmp_path / "root", "--device", "cuda", "--profile", "minimal", "--iterations", "2"]
        finished = benchmark(*words, "--artifacts-dir", tmp_path / "run", scratch=tmp_path, under=under)
        row = rows_of(tmp_path / "run")["double"]
        assert (finished.code, row["status"], list(row["timings"])) == (0, "PASSED", ["default"]), finished
        return row, tmp_path / "run" / "demo_double"

    return run


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    """Puts a script of that name before the real tool."""

    def put(name, script):
        folder = tmp_path / "tools"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


def lines_of(row, tool):
    return [note for note in row["notes"] if note.startswith(f"profile: {tool}")]


def test_both_tell_of_a_step_of_each_side(profiled):
    row, folder = profiled()
    for side in row["sides"].values():
        assert (side["profile"]["step"]["source"], side["profile"]["step"]["launches"]) == ("nsys", 1)
        assert side["profile"]["counters"]["gpu__time_duration.sum"] > 0
    assert lines_of(row, "nsys")[0].endswith(" traced a step a side")
    assert lines_of(row, "ncu")[0].endswith(" counted minimal in a step a side")
    assert {"profile.nsys-rep", "profile.ncu-rep", "profile.chrome.json", "profile_counters.csv"} <= {
        path.name for path in folder.iterdir()
    }


def test_nsys_without_its_importers_libraries_names_them(profiled, monkeypatch):
    kept = [folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "nsys").exists()]
    monkeypatch.setenv("PATH", os.pathsep.join(kept))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    bare = find_tool("nsys")
    lacking = importer_lacks(bare) if bare else ()
    if not lacking:
        pytest.skip("this machine's nsys has all that its importer needs")
    row, _ = profiled()
    (line,) = lines_of(row, "nsys")
    assert all(name in line for name in lacking)
    assert line.endswith("; torch.profiler traced instead")
    assert row["sides"]["optimized"]["profile"]["step"]["source"] == "torch.profiler"
    assert row["sides"]["optimized"]["profile"]["counters"]["gpu__time_duration.sum"] > 0


def test_ncu_without_the_right_to_count_says_who_has_it(profiled, tmp_path):
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("giving up a right takes setpriv and root")
    row, _ = profiled(under=WITHOUT_RIGHTS)
    lines = lines_of(row, "ncu")
    if "counted minimal" in lines[0]:
        pytest.skip("this driver lets everybody count")
    assert "ERR_NVGPUCTRPERM" in lines[0]
    assert row["sides"]["optimized"]["profile"]["step"]["source"] == "nsys"


@pytest.mark.parametrize("name", ["nsys", "ncu"])
def test_a_profiler_that_crashes_costs_its_own_figures(profiled, on_path, name):
    real = NSYS if name == "nsys" else NCU
    # In 2 s torch is not imported yet: what ends then is no side.
    on_path(name, f'case "$*" in *child.profiled*) exec timeout --signal=SEGV 2 "{real}" "$@";; esac\nexec "{real}" "$@"')
    row, _ = profiled()
    (line,) = lines_of(row, name)
    assert line.startswith(f"profile: {name}: it wrote no report, exit code "), row["notes"]
    told = row["sides"]["optimized"]["profile"]
    assert told["step"]["source"] == ("torch.profiler" if name == "nsys" else "nsys")
    assert bool(told["counters"]) is (name == "nsys")


def test_a_side_that_crashes_under_a_profiler_keeps_its_time(profiled):
    row, _ = profiled(optimized=CRASHES)
    assert [note for note in row["notes"] if note.startswith("profile:")] == [
        note for note in row["notes"] if note.startswith("profile: the process ended with exit code 3 preparing optimized")
    ]
    assert row["sides"]["optimized"]["profile"] is None


def test_a_run_under_an_outside_nsys_shows_kernels_and_ranges(tmp_path):
    write_pair(tmp_path / "root")
    report = tmp_path / "outside"
    under = (str(NSYS), "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--output", str(report))
    words = ["run", "--root", tmp_path / "root", "--device", "cuda", "--iterations", "2", "--artifacts-dir", tmp_path / "run"]
    finished = benchmark(*words, scratch=tmp_path, under=under)
    assert rows_of(tmp_path / "run")["double"]["status"] == "PASSED", finished
    command = [NSYS, "stats", "--report", "cuda_gpu_kern_sum", "--format", "csv", f"{report}.nsys-rep"]
    kernels = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "elementwise" in kernels.stdout, kernels
    # Not every nsys brings the report nvtx_sum; the file that the other was made from has the ranges.
    with NsysDatabase(report.with_suffix(".sqlite")) as database:
        assert {"demo:double", "baseline_double/step", "optimized_double/step"} <= {text for text, *_ in database.ranges()}


def test_a_run_under_an_outside_ncu_shows_the_kernels(tmp_path):
    write_pair(tmp_path / "root")
    log = tmp_path / "ncu.log"
    under = (str(NCU), "--target-processes", "all", "--kernel-name", "regex:elementwise", "--launch-count", "4")
    counted = ("--metrics", "launch__registers_per_thread", "--log-file", str(log))
    words = ["run", "--root", tmp_path / "root", "--device", "cuda", "--iterations", "2", "--artifacts-dir", tmp_path / "run"]
    finished = benchmark(*words, scratch=tmp_path, under=(*under, *counted))
    assert rows_of(tmp_path / "run")["double"]["status"] == "PASSED", finished
    assert "elementwise" in log.read_text()
    assert "launch__registers_per_thread" in log.read_text()
