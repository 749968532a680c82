"""What was meant as a directive is never dropped in silence; what is prose is left alone."""

import re

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.directives import KEYS, Directives, read_directives
from common.python.pairs.lookalikes import lookalikes_in
from tests.support.commands import ROOT
from tools.cli.benchmark_cli import run_command_line


def refused(tmp_path, text, name="optimized_copy.cu"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BenchmarkError) as error:
        read_directives(tmp_path / name)
    return str(error.value).removeprefix(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("// need: fp8", "needs"),
        ("# baselin: ch15/baseline_x.py", "baseline"),
        ("// ahs: wgmma_wait", "has"),
        ("// hsa: wgmma_wait", "has"),
        ("// NEEDS: fp8", "needs"),
        ("// Needs: fp8, gpus 2", "needs"),
        ("// Allow: alloc, sync", "allows"),
        ("// needs fp8", "needs"),
        ("// needs = fp8", "needs"),
        ("// allows alloc", "allows"),
        ("// nvcc -O3 --use_fast_math", "nvcc"),
        ("// baseline ch07/baseline_copy.cu", "baseline"),
        ("// instead ch10:wgmma_triple_overlap", "instead"),
        ("// scratch float partial[rows * 4]", "scratch"),
        ("// has registers <= 64", "has"),
        ("// has wgmma_wait", "has"),
        ("// requires: wgmma", "needs"),
        ("// claims: wgmma_wait", "proves"),
        ("// flags: -O3", "nvcc"),
        ("/// needs: fp8", "needs"),
        ("//! proves: wgmma_wait", "proves"),
        ("## needs: fp8", "needs"),
        ("#: needs: fp8", "needs"),
        ("// @needs: fp8", "needs"),
        ("/* needs: fp8 */", "needs"),
        ("/*\n * needs: fp8\n */", "needs"),
        ("// needs : fp8", "needs"),
        ("// n\N{CYRILLIC SMALL LETTER IE}eds: fp8", "needs"),
        ("// needs\N{FULLWIDTH COLON} fp8", "needs"),
        ("// \N{ZERO WIDTH SPACE}reason: prose", "reason"),
        ("// ne\N{SOFT HYPHEN}eds: fp8", "needs"),
    ],
)
def test_a_lookalike_is_one_sentence_with_file_and_line_and_the_nearest_name(tmp_path, line, key):
    said = refused(tmp_path, f"// Optimized: one pass.\n{line}\nint x;\n")

    assert re.match(r"optimized_copy\.cu:[23]: found ", said)
    assert re.search(rf"; expected [`'](// |# )?{key}\b", said)
    assert "\n" not in said


def test_a_claim_in_a_docstring_is_told_how_it_is_written(tmp_path):
    text = '"""Optimized: one pass.\n\nneeds: fp8\n"""\nimport torch\n'

    assert refused(tmp_path, text, "optimized_copy.py") == (
        "optimized_copy.py:3: found `needs: fp8`; expected `# needs: fp8` on a line of its own"
    )


@pytest.mark.parametrize(
    "text",
    [
        "// Baseline: ch07/baseline_copy.cu\n",
        "// Idea.\n// Needs: two passes over x\n",
        "// Idea.\n// Reason: the loads of a warp are 128 bytes apart.\n",
        "// Idea.\n// needs two passes, so that\n// has no effect on the second.\n",
        "// Idea.\n// allows the compiler to emit one load\n// scratch memory is not needed\n",
        "// Idea.\n// nvcc -std=c++17 -o copy ch07/copy.cu\n",
        "// Idea.\n// Why: the L1 merges a third of the writes.\n// Measured: RESULTS.md.\n// Note: fp8\n",
        "// Idea.\n// http://needs: fp8\n// needs::fp8\n",
        '"""Idea.\n\nNeeds: two GPUs on one host.\n"""\n',
        "// Idea.\nint x;\n// Needs: fp8\n// allows alloc\n",
        "// Idea.\n/* plain */\n// größe: fp8\n",
    ],
)
def test_prose_and_what_stands_below_code_is_no_directive(tmp_path, text):
    (tmp_path / "optimized_copy.cu").write_text(text, encoding="utf-8")

    assert read_directives(tmp_path / "optimized_copy.cu") == Directives(idea=read_directives(tmp_path / "optimized_copy.cu").idea)


def test_no_file_of_the_tree_has_a_lookalike():
    folders = ("common", "tools", "labs", *(f"ch{number:02}" for number in range(1, 21)))
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".cu", ".cuh")}

    assert len(texts) > 900
    assert {path.name: found for path, text in texts.items() if (found := [*lookalikes_in(text, KEYS)])} == {}


def test_on_the_command_line_a_lookalike_ends_a_run_before_anything_is_written(tmp_path, capsys):
    (tmp_path / "root").mkdir()
    assert run_command_line(["new", "ch07:row_sum", "--root", str(tmp_path / "root")]) == 0
    side = tmp_path / "root/ch07/optimized_row_sum.py"
    first, rest = side.read_text().split("\n", 1)
    side.write_text(f"{first}\n# Needs: fp8\n{rest}")
    capsys.readouterr()

    assert run_command_line(["verify", "--root", str(tmp_path / "root"), "--artifacts-dir", str(tmp_path / "run")]) == 1
    assert re.fullmatch(
        r"error: .*optimized_row_sum\.py:2: found `# Needs: fp8`; expected `# needs: fp8` on a line of its own\n", capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()
