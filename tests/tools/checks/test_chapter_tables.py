"""A README's table is what its pairs say, is rewritten in place, and a README that differs fails the check."""

import pytest

from common.python.expectations import keep_expectations
from common.python.figures import speedup_text
from common.python.results import Share
from tests.common.python.factories import an_expectation
from tools.checks import chapter_tables

OPTIMIZED = """\
// Optimized: the tile is turned in shared memory | once.
// expects: 3x, 36 bytes a float against 8
// proves: launches == 1
// proves: counter a < 0.2 x baseline
// has: sts_128bit
"""

README = "# Chapter 7\n\nClaim.\n\n<!-- table: begin -->\n| stale |\n<!-- table: end -->\n\nAfter.\n"

TABLE = """\
<!-- table: begin -->
| pair | idea | expected | measured | share of ceiling (baseline → optimized) | proof |
| --- | --- | --- | --- | --- | --- |
| [transpose](optimized_transpose.cu) | the tile is turned in shared memory \\| once. | 3x, 36 bytes a float against 8 | not measured yet \
| not measured yet | `launches == 1`, `counter a < 0.2 x baseline`, has `sts_128bit` |
| [transpose_wide](optimized_transpose_wide.py) | Wider. | 4x | not measured yet | not measured yet | none |
<!-- table: end -->
"""


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


def refusal(chapter, capsys):
    assert chapter_tables.main([], chapter.parent) == 1
    return capsys.readouterr().err


def test_the_table_is_written_between_the_markers_and_the_rest_stays(chapter):
    assert chapter_tables.main([], chapter.parent) == 0
    assert (chapter / "README.md").read_text() == f"# Chapter 7\n\nClaim.\n\n{TABLE}\nAfter.\n"


def test_the_check_fails_and_writes_nothing_until_the_table_is_written(chapter, capsys):
    assert chapter_tables.main(["--check"], chapter.parent) == 1
    assert (chapter / "README.md").read_text() == README
    assert "ch07/README.md: differs" in capsys.readouterr().out
    chapter_tables.main([], chapter.parent)
    assert chapter_tables.main(["--check"], chapter.parent) == 0


def test_a_lab_has_a_table_too(chapter):
    lab = chapter.parent / "labs" / "moe"
    lab.parent.mkdir()
    chapter.rename(lab)
    assert chapter_tables.main([], lab.parent.parent) == 0
    assert TABLE in (lab / "README.md").read_text()


@pytest.mark.parametrize(
    "readme",
    [
        "# Chapter 7\n",
        "<!-- table: begin -->\n",
        "<!-- table: end -->\n<!-- table: begin -->\n",
        README + README,
        README + "<!-- table: end -->\n",
    ],
)
def test_a_readme_without_one_pair_of_markers_is_an_error_and_stays(chapter, capsys, readme):
    (chapter / "README.md").write_text(readme)
    assert "README.md: found no table to write; expected the lines" in refusal(chapter, capsys)
    assert (chapter / "README.md").read_text() == readme


def test_a_folder_without_a_readme_is_an_error(chapter, capsys):
    (chapter / "README.md").unlink()
    assert "README.md: found No such file or directory; expected the README of a folder with pairs" in refusal(chapter, capsys)


def test_a_side_that_predicts_nothing_is_an_error(chapter, capsys):
    (chapter / "optimized_transpose_wide.py").write_text('"""Optimized: Wider."""\n')
    assert "optimized_transpose_wide.py: found no `expects:` line" in refusal(chapter, capsys)


def test_an_orphan_is_an_error_rather_than_a_missing_row(chapter, capsys):
    (chapter / "optimized_copy.cu").write_text(OPTIMIZED)
    assert "found no workload for it" in refusal(chapter, capsys)


def test_what_was_measured_stands_beside_what_was_expected_a_gpu_each(chapter):
    shares = {
        side: Share(key="dram", share=share, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)
        for side, share in (("baseline", 0.312), ("optimized", 0.917))
    }
    first, wide, other = an_expectation(2.31), an_expectation(1.5, goal="memory"), an_expectation(3.0, shares=shares)
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"default": first, "wide": wide})
    keep_expectations(chapter / "expectations_2xb200.json", "transpose", {"default": other})
    chapter_tables.main([], chapter.parent)

    row = next(line for line in (chapter / "README.md").read_text().splitlines() if line.startswith("| [transpose]"))
    measured, share = row.split(" | ")[3:5]
    speedups = [speedup_text(each.speedup) for each in (other, first, wide)]
    assert measured == "2xB200: {}; H200: {}; H200 @wide: {}, memory 1.50x [1.50, 1.50]".format(*speedups)
    assert share == "2xB200: 31 % → 92 %"


def test_a_pair_that_nobody_measured_says_so_beside_one_that_was(chapter):
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"default": an_expectation(2.31)})
    chapter_tables.main([], chapter.parent)

    row = next(line for line in (chapter / "README.md").read_text().splitlines() if line.startswith("| [transpose_wide]"))
    assert row.split(" | ")[3:5] == ["not measured yet", "not measured yet"]


def test_expectations_that_cannot_be_read_are_an_error(chapter, capsys):
    (chapter / "expectations_h200.json").write_text("{}")
    assert "expectations_h200.json: no schema_version" in refusal(chapter, capsys)
