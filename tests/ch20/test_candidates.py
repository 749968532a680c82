"""Candidates that hang, eat memory, write elsewhere, open a socket or print a verdict are refused, and leave no process and no file."""

import os
import socket
import textwrap

import pytest

from tests.ch20.conftest import CHEATS

pytestmark = pytest.mark.slow

RIGHT = """
    import torch

    def prepare(x, rows):
        y = torch.empty(rows, device=x.device)
        return lambda: torch.sum(x, dim=1, out=y)
"""


def planted(text, returns="x.sum(dim=1)"):
    """A side that runs `text` in each step."""
    body = textwrap.indent(textwrap.dedent(text).strip(), " " * 8)
    return (
        f'"""Planted."""\n\nimport torch\n\n\ndef prepare(x, rows):\n    def step():\n{body}\n        return {returns}\n\n    return step\n'
    )


def test_an_honest_candidate_passes(offered):
    found = offered(textwrap.dedent(RIGHT))
    assert found.status == "PASSED", found.reason
    assert found.speedup[0] > 0


def test_one_that_hangs_is_ended_with_what_it_started(offered, tmp_path):
    hung = tmp_path / "out/attempt_001/run/hung"
    hangs = f"""
        import pathlib, subprocess, time
        subprocess.Popen(["setsid", "sleep", "600"])
        pathlib.Path("{hung}").touch()
        time.sleep(600)
    """
    found = offered(planted(hangs), seconds=12.0)
    assert (found.status, found.reason) == ("ERROR", "its processes took more than 12 s; expected to end by themselves")
    assert hung.exists(), "the limit came before the step"


@pytest.mark.parametrize("taken", ["bytearray(256 << 20)", "mmap.mmap(-1, 256 << 20)"], ids=["own", "shared"])
def test_one_that_eats_memory_is_ended(offered, taken):
    eats = f"""
        import mmap
        held = []
        while True:
            held.append({taken})
            for at in range(0, len(held[-1]), 4096):
                held[-1][at] = 1
    """
    found = offered(planted(eats))
    assert (found.status, found.reason) == ("ERROR", "its processes held more than 4 GiB of memory; expected to end by themselves")


def test_one_that_writes_elsewhere_is_refused_and_nothing_is_written(offered, tmp_path):
    outside = tmp_path / "outside"
    found = offered(planted(f'open("{outside}", "w").write("was here")'))
    assert found.status == "CRASHED"
    assert "Read-only file system" in found.reason
    assert not outside.exists()


def test_one_that_edits_its_opponent_is_refused(offered, tmp_path):
    kernels = tmp_path / "out/attempt_001/kernels"
    found = offered(planted(f'open("{kernels}/baseline_sum.py", "a").write("slower")'))
    assert (found.status, "Read-only file system" in found.reason) == ("CRASHED", True)
    assert (kernels / "baseline_sum.py").read_text() == (CHEATS / "baseline_sum.py").read_text()


def test_one_that_opens_a_socket_is_refused_whatever_it_catches(offered):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        calls = f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 1)
            except OSError:
                pass
        """
        found = offered(planted(calls))
        with pytest.raises(TimeoutError):
            server.accept()
    assert found.status == "CRASHED"
    assert "SIGSYS" in found.reason


VERDICT = """
    import glob, json, os, signal
    ends = {"estimate": 99.0, "low": 98.0, "high": 100.0}
    row = {"target": "kernels:sum", "status": "PASSED", "reason": "", "timings": {"": {"speedups": {"optimized": ends}}}}
    for path in ["/dev/stdout", "/dev/stderr", *glob.glob("/proc/[0-9]*/fd/*")]:
        try:
            with open(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_TRUNC), "w") as file:
                file.write(json.dumps({"rows": [row]}))
        except OSError:
            pass
"""
KILLS = """
    for path in glob.glob("/proc/[0-9]*"):
        try:
            os.kill(int(path[6:]), signal.SIGKILL) if int(path[6:]) != os.getpid() else None
        except OSError:
            pass
"""


def test_one_that_prints_a_verdict_gets_the_harness_s(offered):
    found = offered(planted(VERDICT, returns="torch.zeros(rows)"))
    assert (found.status, found.speedup) == ("WRONG_RESULT", [])


def test_one_that_prints_a_verdict_and_ends_whoever_might_object_is_refused(offered):
    found = offered(planted(textwrap.dedent(VERDICT) + textwrap.dedent(KILLS)))
    assert (found.status, found.reason) == ("ERROR", "signal 9 ended the harness; expected a verdict")
    os.kill(os.getpid(), 0)  # not this process, though
