"""The profile of a prompt and its decode steps has both phases, as often as they ran."""

import json
import subprocess
import sys

from common.python.project import PROJECT_ROOT

SCRIPT = PROJECT_ROOT / "ch16/inference_profiling.py"


def test_phases_and_trace(tmp_path):
    trace = tmp_path / "trace.json"
    command = [sys.executable, SCRIPT, "--prompt", "20", "--steps", "3", "--trace", trace]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split() for line in ended.stdout.splitlines() if line.startswith(("prefill", "decode"))]
    assert [line[:2] for line in lines] == [["prefill", "1"], ["decode", "3"]]
    assert all(float(line[2]) > 0 for line in lines)
    names = {event.get("name") for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"prefill", "decode"} <= names


def test_too_few_layers_are_refused():
    ended = subprocess.run([sys.executable, SCRIPT, "--layers", "1"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 2
    assert "found 1 layers; expected at least 4" in ended.stderr
