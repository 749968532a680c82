"""The script of gpt-oss-120b runs both sides at a small size, sees wrong experts, and refuses what the model has not."""

import subprocess
import sys

from common.python.project import PROJECT_ROOT

FOLDER = PROJECT_ROOT / "ch16"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=FOLDER, timeout=200, check=False)


def test_both_sides_are_right():
    done = run("import sys, gpt_oss_120b_inference as demo; sys.argv = ['x', '--layers', '1']; sys.exit(demo.main())")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()[2:]}
    assert set(rows) == {"bf16", "MXFP4"}
    assert all(float(rate) > 0 and float(error) <= 1 for _, rate, error in rows.values())


def test_a_wrong_answer_is_seen():
    code = "import sys, gpt_oss_120b_inference as demo\nfrom common.python.child.sides import alone\n"
    code += "plain = alone.load_side\n"
    code += "class Off:\n    close = lambda self: None\n"
    code += "    def __init__(self, *a): self.side = plain(*a)\n"
    code += "    def prepare(self, *a):\n        step = self.side.prepare(*a)\n        return lambda: step() + 2\n"
    code += "alone.load_side = Off\nsys.argv = ['x', '--layers', '1']\nsys.exit(demo.main())"
    done = run(code)
    assert done.returncode == 1, done.stderr


def test_more_layers_than_the_model_has_are_refused():
    done = run("import sys, gpt_oss_120b_inference as demo; sys.argv = ['x', '--layers', '37']; demo.main()")
    assert done.returncode == 2
    assert "found 37 layers; expected 1 to 36" in done.stderr.splitlines()[-1]
