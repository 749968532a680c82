"""A chapter of two pairs that predict, and the same with a ladder whose second rung is another chapter's baseline."""

import pytest

OPTIMIZED = """\
// Optimized: a tile of `x` in shared memory | once.
// expects: 3x, 36 bytes a float against 8
// proves: launches == 1
// proves: counter a < 0.2 x baseline
// has: sts_128bit
"""
README = "# Chapter 7\n\nClaim.\n\n<!-- table: begin -->\n| stale |\n<!-- table: end -->\n\nAfter.\n"
LADDER_NS = {"baseline": 80_000.0, "once": 60_000.0, "baseline_copy": 50_000.0, "optimized": 40_000.0}


@pytest.fixture
def chapter(tmp_path):
    folder = tmp_path / "ch07"
    folder.mkdir()
    (folder / "workload_transpose.py").write_text('"""Transpose."""\n')
    (folder / "baseline_transpose.cu").write_text("// Baseline: plain.\n")
    (folder / "optimized_transpose.cu").write_text(OPTIMIZED)
    (folder / "optimized_transpose_wide.py").write_text('"""Optimized: Wider."""\n# expects: 4x\n')
    (folder / "README.md").write_text(README)
    return folder


@pytest.fixture
def ladder(chapter):
    """The chapter, its transpose a ladder whose second rung is a baseline of another chapter."""
    (chapter / "workload_transpose.py").write_text(
        '"""Transpose."""\nWorkload(ladder=(\n"once",\n"ch08/baseline_copy.cu",  # expects: 1.2x, copied\n))\n'
    )
    (chapter / "optimized_transpose_once.cu").write_text("// Optimized: once | read.\n// expects: 1.3x\n")
    other = chapter.parent / "ch08"
    other.mkdir()
    for file, text in (("workload_copy.py", ""), ("baseline_copy.cu", "// Baseline: copied.\n"), ("optimized_copy.cu", OPTIMIZED)):
        (other / file).write_text(text)
    (other / "README.md").write_text(README)
    return chapter
