"""What `show` prints is the files' own text: the workload, then the diff that is the lesson."""

import io

import pytest
from rich.console import Console

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.run.show import diff_of, show_pair
from tests.support.commands import BASELINE, OPTIMIZED, write_pair

CUDA = "// Optimized: a kernel.\nLAUNCH(float* y, cudaStream_t stream) { return cudaSuccess; }\n"


def shown(root, target="demo:double", *, terminal=False):
    file = io.StringIO()
    show_pair(discover(root), target, Console(file=file, force_terminal=terminal, highlight=False, width=40))
    return file.getvalue()


def test_a_pair_is_its_workload_and_the_diff_of_its_sides(tmp_path):
    text = shown(write_pair(tmp_path))
    assert (tmp_path / "demo/workload_double.py").read_text().strip() in text
    assert diff_of(tmp_path / "demo/baseline_double.py", tmp_path / "demo/optimized_double.py", tmp_path).strip() in text
    assert "--- demo/baseline_double.py\n+++ demo/optimized_double.py\n" in text
    assert "-    return lambda: x + x\n+    return lambda: x * 2\n" in text


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
