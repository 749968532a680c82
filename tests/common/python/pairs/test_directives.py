"""Directives are read as text, in both comment syntaxes, and what is not understood is never dropped in silence."""

from __future__ import annotations

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.directives import Directives, Scratch, evaluate, first_line, read_directives


@pytest.fixture
def read(tmp_path):
    """Directives of a file with the given text."""

    def read_text(text, name="optimized_copy.cu"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_directives(tmp_path / name)

    return read_text


def test_a_cuda_side(read):
    text = """\
// Optimized: one pass, and partial sums in scratch.
// needs: wgmma, tma
// needs: gpus 2
// instead: ch10:wgmma_triple_overlap
// nvcc: -O3 --use_fast_math
    // scratch: unsigned long long partial[rows * 4]
// proves: instruction HGMMA
// proves: registers < 128, spills == 0
// has: instruction UTMALDG
// allows: alloc, sync
// reason: the baseline is O(n^2)
// expects: 4x, 8 passes against 2
#include "common/cuda/launch.cuh"
"""
    assert read(text) == Directives(
        idea="one pass, and partial sums in scratch.",
        needs=("wgmma", "tma", "gpus 2"),
        instead="ch10:wgmma_triple_overlap",
        nvcc=("-O3", "--use_fast_math"),
        scratch=(Scratch("unsigned long long", "partial", "rows * 4"),),
        proves=("instruction HGMMA", "registers < 128, spills == 0"),
        has=("instruction UTMALDG",),
        allows=("alloc", "sync"),
        reason="the baseline is O(n^2)",
        expects="4x, 8 passes against 2",
    )


def test_a_python_file(read):
    found = read('"""Serve requests."""\n# needs: fp8\n# baseline: ch15/baseline_x.py\n\nimport torch\n', "workload_x.py")
    assert found == Directives(idea="Serve requests.", needs=("fp8",), baseline="ch15/baseline_x.py")


def test_a_space_after_the_colon_is_not_needed(read):
    assert read("//needs:wgmma\n# has:instruction X").needs == ("wgmma",)
    assert read("# has:instruction X").has == ("instruction X",)


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # needs: fp8",
        "needs: fp8",
        "// Needs: two passes",
        "/* plain */",
        "// note: fp8",
        "// needs::fp8",
        "// see https://example.org",
        "# type: ignore",
    ],
)
def test_other_text_is_no_directive(read, line):
    assert read(f"// Idea.\n{line}\n") == Directives(idea="Idea.")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("// need: fp8", r"optimized_copy.cu:2: found directive 'need'; expected 'needs'"),
        ("// instaed: ch01:gemm", r":2: found directive 'instaed'; expected 'instead'"),
        ("// needs:", r":2: found `needs:` without a value; expected one on the same line"),
        ("// reason: a\n// reason: b", r"found 2 `reason:` lines; expected one"),
        ("// baseline: a\n// baseline: b", r"found 2 `baseline:` lines; expected one"),
        ("// allows: alloc, sleep", r"found `allows: sleep`; expected some of alloc, sync, grid, threads, processes"),
        ("// scratch: float partial", r"found `scratch: float partial`; expected `scratch: float partial\[rows \* 4\]`"),
        ("// scratch: float partial[rows][4]", r"expected `scratch: float partial\[rows \* 4\]`"),
        ("// scratch: float a[4], b[4]", r"expected `scratch: float partial\[rows \* 4\]`"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_the_file(read, line, message):
    with pytest.raises(BenchmarkError, match=message) as error:
        read(f"// Idea.\n{line}\n")
    assert "optimized_copy.cu" in str(error.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe")
    for name in ("binary.cu", "missing.cu"):
        with pytest.raises(BenchmarkError, match=rf"{name}: .*; expected a readable UTF-8 text file"):
            read_directives(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "idea"),
    [
        ('"""Transpose a matrix."""', "Transpose a matrix."),
        ('\n"""\nTranspose a matrix.\n"""', "Transpose a matrix."),
        ("// Baseline: a warp reads one row.\n// More.", "a warp reads one row."),
        ("# Optimized:  in one launch", "in one launch"),
        ('// Library: cuBLAS, called "as is"', 'cuBLAS, called "as is"'),
        ('"""Optimized: "tiled"."""', '"tiled".'),
        ("", ""),
    ],
)
def test_the_idea_is_the_first_line_without_marks_and_side(text, idea):
    assert first_line(text) == idea


def test_a_result_document_shows_what_is_set():
    directives = Directives(needs=("fp8", "gpus 2"), reason="why", idea="an idea")
    assert directives.as_text() == {"needs": "fp8, gpus 2", "reason": "why"}


@pytest.mark.parametrize(
    ("expression", "value"),
    [("7", 7), ("rows", 10), ("rows * 4 + 2", 42), ("(rows + 3) / 4", 3), ("rows // 3 - 1", 2), ("rows % 4", 2), ("rows * (cols + 1)", 40)],
)
def test_sizes_are_integer_arithmetic_on_the_shape(expression, value):
    assert evaluate(expression, {"rows": 10, "cols": 3}) == value


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("depth * 2", r"found 'depth'; expected integer arithmetic on \['eps', 'rows'\]"),
        ("rows * 0.5", "found '0.5'"),
        ("rows * eps", "found 'eps'"),
        ("rows ** 2", r"found 'rows \*\* 2'"),
        ("len(rows)", r"found 'len\(rows\)'"),
        ("__import__('os')", "found"),
        ("rows +", "invalid syntax; expected integer arithmetic"),
        ("4 / (rows - 10)", "found a division by zero at .*; expected none"),
        ("rows % 0", "found a division by zero"),
    ],
)
def test_anything_else_is_an_error_that_shows_the_expression(expression, message):
    with pytest.raises(BenchmarkError, match=message):
        evaluate(expression, {"rows": 10, "eps": 0.1})


def test_scratch_may_be_empty_and_not_negative():
    scratch = Scratch("float", "partial", "rows / 32")
    assert scratch.elements({"rows": 100}) == 3
    assert scratch.elements({"rows": 1}) == 0
    with pytest.raises(BenchmarkError, match=r"scratch partial\[rows - 4\]: found -3 elements at .*; expected none or more"):
        Scratch("float", "partial", "rows - 4").elements({"rows": 1})
