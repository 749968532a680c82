"""What `show` prints: the idea, the diff that is the lesson, in the files' own text, then what was accepted; the workload where asked."""

import io
import re

import pytest
from rich.console import Console

from common.python.errors import BenchmarkError
from common.python.gate.expectations import keep_expectations
from common.python.pairs.discovery import discover
from common.python.results import Share
from common.python.run.show import diff_of, show_pair
from tests.support.commands import BASELINE, OPTIMIZED, write_pair
from tests.support.factories import an_expectation

SHARES = {"baseline": 0.12, "optimized": 0.86}
CUDA = "// Optimized: a kernel.\nLAUNCH(float* y, cudaStream_t stream) { return cudaSuccess; }\n"


def shown(root, target="demo:double", *, terminal=False, notes=False):
    file = io.StringIO()
    show_pair(discover(root), target, Console(file=file, force_terminal=terminal, highlight=False, width=40), notes=notes)
    return file.getvalue()


def test_a_pair_is_its_idea_and_the_diff_of_its_sides(tmp_path):
    text = shown(write_pair(tmp_path))
    assert text.startswith("demo:double: y = 2x.\nidea: a product.\n\n--- demo/baseline_double.py\n")
    assert text.endswith("\n\naccepted: nothing yet, on any GPU model\n")
    assert "WORKLOAD" not in text
    assert diff_of(tmp_path / "demo/baseline_double.py", tmp_path / "demo/optimized_double.py", tmp_path).strip() in text
    assert "--- demo/baseline_double.py\n+++ demo/optimized_double.py\n" in text
    assert "-    return lambda: x + x\n+    return lambda: x * 2\n" in text


def test_the_workload_is_last_and_only_where_it_is_asked_for(tmp_path):
    workload = (write_pair(tmp_path) / "demo/workload_double.py").read_text()
    assert shown(tmp_path, notes=True).endswith(f"{workload.strip()}\n")
    assert shown(tmp_path, notes=True).startswith(shown(tmp_path))


def test_what_was_accepted_is_a_line_a_gpu_model_and_shape(tmp_path):
    shares = {side: Share(key="dram", share=share, ceiling_ns=1, floor_ns=1, at_held_clock=None) for side, share in SHARES.items()}
    folder = write_pair(tmp_path) / "demo"
    keep_expectations(folder / "expectations_h200.json", "double", {"default": an_expectation(2.0, shares=shares)})
    keep_expectations(folder / "expectations_2xb200.json", "double", {"small": an_expectation(3.0)})
    keep_expectations(folder / "expectations_h200.json", "other", {"default": an_expectation(9.0)})
    b200, h200 = shown(tmp_path).splitlines()[-2:]
    assert re.fullmatch(r"accepted on 2xB200 @small: [23]\.\d+x \[\d.\d+, \d.\d+\]", b200)
    assert re.fullmatch(r"accepted on H200: [12]\.\d+x \[.*\], share of its ceiling 12 % → 86 % \(dram\)", h200)


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("predicts: optimized 1.09 ms = 8 * n / dram_copy", True),
        ("predicts: optimized 1.09 ms = 8 * n / dram_copy on h100", False),
        ("predicts: optimized = 0.5 x baseline", False),
        ("predicts: optimized 1.2 GB = 1.2e9", False),
        ("predicts: nonsense", False),
    ],
)
def test_of_which_gpu_predicted_times_are_is_told_where_their_line_does_not_say(tmp_path, line, is_told):
    text = shown(write_pair(tmp_path, optimized=OPTIMIZED.replace('"""\n', f'"""\n# {line}\n', 1)))
    assert ("\npredicted: times are of the H200 where their line names no other model\naccepted: " in text) == is_told


def test_an_expectations_file_that_is_not_one_is_told_before_anything_is_shown(tmp_path):
    (write_pair(tmp_path) / "demo/expectations_h200.json").write_text("{")
    with pytest.raises(BenchmarkError, match=r"expectations_h200\.json: "):
        shown(tmp_path)


def test_the_text_is_the_files_own(tmp_path):
    """Neither wrapped, nor its tabs expanded, nor what looks like markup or an emoji's name taken for it."""
    odd = f"    return lambda: x[:end:2][:on:]  # [bold]:heart:[/bold]\t{'long ' * 30}end\n"
    text = shown(write_pair(tmp_path, optimized=f'"""Optimized."""\n\n\ndef prepare(x):\n{odd}'))
    assert f"+{odd}" in text


def test_sides_in_two_languages_are_both_shown_whole(tmp_path):
    text = shown(write_pair(tmp_path, optimized=CUDA))
    assert BASELINE.strip() in text
    assert CUDA.strip() in text
    assert "+++" not in text


def test_a_terminal_gets_colours(tmp_path):
    assert "\x1b[" in shown(write_pair(tmp_path), terminal=True)
    assert "\x1b[" not in shown(tmp_path)


def test_a_half_shows_its_pair(tmp_path):
    assert shown(write_pair(tmp_path), "demo:double_baseline") == shown(tmp_path)


def test_a_variant_is_read_against_what_it_is_nearest_to(tmp_path):
    write_pair(tmp_path, optimized=OPTIMIZED.replace("return", "return  # one\n    # two\n    # three\n    return"))
    variant = (tmp_path / "demo/optimized_double.py").read_text().replace("# two", "# 2")
    (tmp_path / "demo/optimized_double_again.py").write_text(variant)
    assert "--- demo/optimized_double.py\n+++ demo/optimized_double_again.py" in shown(tmp_path, "demo:double_again")


def test_a_ladder_is_a_diff_a_step(tmp_path):
    write_pair(tmp_path)
    workload = tmp_path / "demo/workload_double.py"
    workload.write_text(workload.read_text().replace("Workload(", 'Workload(ladder=("once", "other/baseline_twice.py"),', 1))
    for path, body in (("demo/optimized_double_once.py", "x + 1 * x"), ("other/baseline_twice.py", "2 * x")):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(BASELINE.replace("x + x", body))
    steps = [line[4:] for line in shown(tmp_path).splitlines() if line.startswith(("--- ", "+++ "))]
    files = ["demo/baseline_double.py", "demo/optimized_double_once.py", "other/baseline_twice.py", "demo/optimized_double.py"]
    assert steps == [files[0], files[1], files[1], files[2], files[2], files[3]]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("demo", "show demo: found 2 pairs; expected the name of one"),
        ("demo:doubel", "target 'demo:doubel': found nothing of that name; expected one like demo:double"),
    ],
)
def test_a_target_that_is_not_one_pair_is_refused(tmp_path, target, sentence):
    write_pair(tmp_path)
    write_pair(tmp_path, "demo:triple")
    with pytest.raises(BenchmarkError) as caught:
        shown(tmp_path, target)
    assert str(caught.value).startswith(sentence)
