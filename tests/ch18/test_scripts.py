"""The chapter's scripts run on a CPU at a small size, check what they compute, and refuse bad input in one sentence."""

import subprocess
import sys

import pytest

from common.python.project import PROJECT_ROOT


def ran(script, *arguments):
    command = [sys.executable, PROJECT_ROOT / "ch18" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def test_the_decoder_says_what_the_model_says():
    done = ran("run_vllm_decoder.py", "--max-tokens", "12", "--slots", "2", "--budget", "5")
    assert done.returncode == 0, done.stderr
    assert "36 tokens in " in done.stdout
    assert "; 0 are not the model's" in done.stdout
    assert done.stdout.count("--- prompt") == 3


def test_a_decoder_that_says_something_else_is_seen():
    code = "import sys, torch, run_vllm_decoder as demo\n"
    code += "plain = demo.Client.emit\n"
    code += "demo.Client.emit = lambda self, requests, tokens, logits: plain(self, requests, tokens ^ 1, logits)\n"
    code += "sys.argv = ['x', '--max-tokens', '4']\nsys.exit(demo.main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT_ROOT / "ch18", timeout=200, check=False)
    assert done.returncode == 1, done.stderr
    assert "; 0 are not" not in done.stdout


def test_masks_of_flex_attention_are_those_of_dense_attention():
    done = ran("flex_attention_native.py", "--tokens", "300", "--window", "40", "--heads", "2", "--dim", "16")
    assert done.returncode == 0, done.stderr
    kept = {line.split()[0]: float(line.split()[1].rstrip("%")) for line in done.stdout.splitlines()[2:]}
    assert set(kept) == {"causal", "window", "document", "bias"}
    assert kept["window"] < kept["causal"] == kept["bias"]  # of 3 x 3 blocks


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("run_vllm_decoder.py", ["--max-tokens", "0"], "found --max-tokens 0; expected at least 1"),
        ("run_vllm_decoder.py", ["--engine", "vllm"], "expected"),
        ("flex_attention_native.py", ["--dim", "24"], "found --dim 24; expected a power of two of at least 16"),
    ],
)
def test_bad_input_is_refused(script, arguments, said):
    done = ran(script, *arguments)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
