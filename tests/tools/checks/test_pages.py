"""Every chapter's pages are what its pairs and measurements say, are rewritten in place, and a page that differs fails the check."""

import pytest

from tests.tools.checks.conftest import README
from tools.checks import pages

TABLE = """\
<!-- table: begin -->
| pair | idea | predicted | measured | share of ceiling |
| --- | --- | --- | --- | --- |
| [transpose](optimized_transpose.cu) | a tile of `x` in shared memory \\| once | 3x | not measured yet | not measured yet |
| [transpose_wide](optimized_transpose_wide.py) | Wider | 4x | not measured yet | not measured yet |

Times with intervals, library, proofs and where each was measured: [RESULTS.md](RESULTS.md).
<!-- table: end -->
"""


def refusal(chapter, capsys):
    assert pages.main([], chapter.parent) == 1
    return capsys.readouterr().err


def test_the_table_is_written_between_the_markers_and_the_rest_stays(chapter):
    assert pages.main([], chapter.parent) == 0
    assert (chapter / "README.md").read_text() == f"# Chapter 7\n\nClaim.\n\n{TABLE}\nAfter.\n"
    assert (chapter / "RESULTS.md").read_text().startswith("# Results: ch07\n")


def test_the_check_fails_and_writes_nothing_until_the_pages_are_written(chapter, capsys):
    assert pages.main(["--check"], chapter.parent) == 1
    assert (chapter / "README.md").read_text() == README
    assert not (chapter / "RESULTS.md").exists()
    told = capsys.readouterr().out
    assert "ch07/README.md: differs; expected what tools/checks/pages.py writes" in told
    assert "ch07/RESULTS.md: differs" in told
    pages.main([], chapter.parent)
    assert pages.main(["--check"], chapter.parent) == 0


@pytest.mark.parametrize("name", ["README.md", "RESULTS.md"])
def test_a_page_that_was_edited_by_hand_fails_the_check(chapter, name):
    pages.main([], chapter.parent)
    page = chapter / name
    page.write_text(page.read_text().replace("not measured yet", "9.99x").replace("Not measured yet", "9.99x"))
    assert pages.main(["--check"], chapter.parent) == 1


def test_a_lab_has_pages_too(chapter):
    lab = chapter.parent / "labs" / "moe"
    lab.parent.mkdir()
    chapter.rename(lab)
    assert pages.main([], lab.parent.parent) == 0
    assert TABLE in (lab / "README.md").read_text()
    assert (lab / "RESULTS.md").read_text().startswith("# Results: labs/moe\n")


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
    assert "optimized_transpose_wide.py: found no `predicts:`, `guess:` or `expects:` line" in refusal(chapter, capsys)


def test_an_orphan_is_an_error_rather_than_a_missing_row(chapter, capsys):
    (chapter / "optimized_copy.cu").write_text("// Optimized: alone.\n// expects: 3x\n")
    assert "found no workload for it" in refusal(chapter, capsys)


def test_expectations_that_cannot_be_read_are_an_error(chapter, capsys):
    (chapter / "expectations_h200.json").write_text("{}")
    assert "expectations_h200.json: no schema_version" in refusal(chapter, capsys)


def test_a_step_that_predicts_nothing_is_an_error(ladder, capsys):
    workload = ladder / "workload_transpose.py"
    workload.write_text(workload.read_text().replace("  # expects: 1.2x, copied", ""))
    found = refusal(ladder, capsys)
    assert "baseline_copy.cu: found no `predicts:` line" in found
    assert "or, of this step, in the workload" in found


def test_a_step_may_be_predicted_by_the_workload_of_its_ladder(ladder, capsys):
    workload = ladder / "workload_transpose.py"
    workload.write_text(
        workload.read_text().replace("  # expects: 1.2x, copied", "") + "# predicts: baseline_copy = 0.8 x once  (copied)\n"
    )
    assert pages.main([], ladder.parent) == 0
    assert "  - predicted over the step before: baseline_copy = 0.8 x once  (copied)\n" in (ladder / "RESULTS.md").read_text()


def test_measured_values_are_filled_in_on_the_front_page_and_in_docs_too(chapter):
    docs = chapter.parent / "common" / "docs"
    docs.mkdir(parents=True)
    for page in (chapter.parent / "README.md", docs / "guide.md"):
        page.write_text("Gains {{measured: ch07:transpose speedup}}.\n")
    assert pages.main([], chapter.parent) == 0
    for page in (chapter.parent / "README.md", docs / "guide.md"):
        assert page.read_text() == "Gains <!-- measured: ch07:transpose speedup -->not measured yet<!-- /measured -->.\n"


def test_the_pages_of_this_tree_are_up_to_date():
    assert pages.main(["--check"]) == 0
