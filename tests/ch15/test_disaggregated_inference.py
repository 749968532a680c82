"""The demo serves by both engines, finds all tokens right, and sees a wrong one."""

import subprocess
import sys

from common.python.project import PROJECT_ROOT

SMALL = ["--requests", "4", "--per-second", "40", "--prompt", "30", "--longest", "8"]


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PROJECT_ROOT / "ch15", timeout=120, check=False)


def test_both_engines_say_what_the_model_says():
    done = run(f"import sys, disaggregated_inference as demo; sys.exit(demo.main({SMALL}))")
    assert done.returncode == 0, done.stderr
    assert "all tokens are the model's" in done.stdout
    assert {line.split()[0] for line in done.stdout.splitlines()[2:4]} == {"colocated", "disaggregated"}


def test_a_pool_without_the_prompts_blocks_is_seen():
    code = "import sys, disaggregated_inference as demo\n"
    code += "demo.disaggregated.push = lambda source, target, sequence: target.append(sequence, source.length(sequence))\n"
    done = run(f"{code}sys.exit(demo.main({SMALL}))")
    assert done.returncode == 1, done.stderr
    assert "tokens are not the model's" in done.stdout


def test_a_smaller_capacity_drops_more():
    done = run("import sys, disaggregated_inference as demo; sys.exit(demo.main(['--capacity-factors', '0.5,1,4']))")
    assert done.returncode == 0, done.stderr
    dropped = [float(line.split()[2].rstrip("%")) for line in done.stdout.splitlines()[2:]]
    assert dropped == sorted(dropped, reverse=True)
    assert dropped[0] >= 50.0
    assert dropped[-1] == 0.0


def test_a_factor_that_is_no_number_is_refused():
    done = run("import disaggregated_inference as demo; demo.main(['--capacity-factors', '1,none'])")
    assert done.returncode == 2
    assert "found --capacity-factors 1,none; expected numbers above 0" in done.stderr.splitlines()[-1]
