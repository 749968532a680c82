"""The profiling scripts say what is missing, fit a command to the nsys that is there, and name pairs that exist."""

import os
import shutil
import subprocess
import sys

import pytest

from common.python.child.sides.loader import import_file
from common.python.machine.description import find_tool
from common.python.pairs.discovery import discover
from common.python.profile.advice import Bottleneck
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch17"
RUN_H200 = PROJECT_ROOT / "tools/pictures/run_h200"
HELP = """usage: nsys profile [<args>] [application]

\t-c, --capture-range=

\t   Possible values are none, cudaProfilerApi, nvtx.

\t--gpu-metrics-device=

\t   GPU Metrics sampling. Not with --sample=none.

\t-s, --sample=

\t   Possible values are 'process-tree', 'system-wide' or 'none'.

\t-t, --trace=

\t   Possible values are 'cuda', 'nvtx', 'osrt', 'cublas'.
"""
FAKE = f"""#!{sys.executable}
import subprocess, sys
if "--help" in sys.argv:
    print({HELP!r})
else:
    program = sys.argv[next(number for number, word in enumerate(sys.argv) if number > 1 and not word.startswith("-")):]
    sys.exit(subprocess.run(program).returncode)
"""


def run(script, *arguments, **variables):
    return subprocess.run(
        [sys.executable, CHAPTER / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=PROJECT_ROOT,
        env={**os.environ, **variables},
        timeout=120,
    )


@pytest.fixture
def fake_nsys(tmp_path):
    path = tmp_path / "nsys"
    path.write_text(FAKE)
    path.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


def toolkit(*arguments, **variables):
    return run("comprehensive_profiling_toolkit.py", *arguments, **variables)


def test_options_are_those_that_this_nsys_lists():
    scripts = import_file(CHAPTER / "comprehensive_profiling_toolkit.py")
    options, left_out = scripts.nsys_options(HELP)
    assert options == ["--force-overwrite=true", "--trace=cuda,nvtx,osrt", "--sample=process-tree", "--gpu-metrics-device=all"]
    assert left_out[:2] == ["--trace=ucx: this nsys does not list it", "--trace=gds: this nsys does not list it"]
    assert "--storage-metrics: this nsys does not list it; the trace will not show disks over time" in left_out
    assert len(left_out) == 2 + len(scripts.WANTED) - 2


def test_a_trace_is_run_and_warns_of_what_it_lacks(fake_nsys, tmp_path):
    done = toolkit("trace", "--out", tmp_path / "report", "--", sys.executable, "-c", "print('served')", PATH=fake_nsys)
    assert done.returncode == 0, done.stderr
    assert "--gpu-metrics-device=all" in done.stdout
    assert "served" not in done.stdout.splitlines()
    assert "warning: --nic-metrics: this nsys does not list it; the trace will not show network cards over time" in done.stderr
    done = toolkit("trace", "--run", "--out", tmp_path / "report", "--", sys.executable, "-c", "print('served'); exit(3)", PATH=fake_nsys)
    assert done.returncode == 3
    assert done.stdout.splitlines()[-1] == "served"
    assert toolkit("trace", PATH=fake_nsys).stderr.startswith("error: trace: found no program; expected one behind --")


@pytest.mark.skipif(find_tool("nsys") is not None, reason="nsys is here")
def test_without_nsys_a_trace_says_what_is_missing():
    done = toolkit("trace", "--", "true")
    assert done.returncode == 5
    assert done.stderr.startswith("found no nsys; expected Nsight Systems installed")


def test_what_is_missing_here_is_told_with_its_cost():
    done = toolkit("tools")
    assert done.returncode in (0, 5), done.stderr
    for name in ("nsys", "ncu", "compute-sanitizer", "nvdisasm"):
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(name)][:1]
        assert ("missing: no " in line) == (find_tool(name) is None)


def test_bottlenecks_of_a_run_rest_on_the_ceilings_of_its_machine(tmp_path):
    done = toolkit("bottlenecks", RUN_H200)
    assert done.returncode == 0, done.stderr
    assert f"optimized: {Bottleneck.MEMORY}" in done.stdout
    assert "ridge point" in done.stdout
    assert toolkit("bottlenecks", tmp_path / "none").stderr.startswith(f"error: {tmp_path / 'none'}: no such folder; expected")
    shutil.copytree(RUN_H200, tmp_path / "run")
    (tmp_path / "run/metrics.json").write_text("[]")
    assert toolkit("bottlenecks", tmp_path / "run").returncode in (1, 5)


def test_the_guides_steps_are_pairs_and_say_what_is_missing():
    done = run("blackwell_profiling_guide.py")
    assert done.returncode in (0, 5), done.stderr
    assert "Nobody has measured these steps on a Blackwell GPU." in done.stdout
    named = [line.split("--targets ")[1].split()[0] for line in done.stdout.splitlines() if "--targets " in line]
    assert len(named) == 8
    assert set(named) <= {pair.target for pair in discover(PROJECT_ROOT).pairs}
    states = [line.split(None, 1)[1] for line in done.stdout.splitlines() if line.startswith("   here ")]
    assert len(states) == 8
    assert all(state == "ready" or state.startswith("missing: ") for state in states)


def test_a_step_that_needs_tcgen05_names_the_pair_to_try_instead():
    done = run("blackwell_profiling_guide.py", "--step", "4", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 5
    assert "missing: needs tcgen05, tma; no CUDA device" in done.stdout
    assert "try ch10:wgmma_triple_overlap" in done.stdout
    assert run("blackwell_profiling_guide.py", "--step", "9").returncode != 0
