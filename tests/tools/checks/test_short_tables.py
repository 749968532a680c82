"""The tables of a chapter's README have five short columns, a row a pair and shape, and say what missed."""

import pytest

from common.python.gate.expectations import keep_expectations
from common.python.results import Share
from tests.support.factories import an_expectation, an_interval, recorded_ladder
from tests.tools.checks.conftest import LADDER_NS, OPTIMIZED, README
from tools.checks import pages
from tools.checks.short_tables import CELL, joined, ratio_text, sections
from tools.checks.written_tables import shown

FORM = "<!-- form: 2 -->\n\n"
LONG = "a tile that lies in shared memory, whose rows every lane of the warp reads at once"


def a_share(share):
    return Share(key="dram", share=share, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)


def rows_of(chapter):
    """The cells of every row of its table, and then of its ladder's."""
    assert pages.main([], chapter.parent) == 0
    lines = (chapter / "README.md").read_text().splitlines()
    return [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]


def row_of(chapter, name):
    return next(row for row in rows_of(chapter) if row[0].startswith(f"[{name}]"))


def keep(chapter, model="h200", **shapes):
    keep_expectations(chapter / f"expectations_{model}.json", "transpose", shapes)


def test_measured_and_share_have_an_entry_a_gpu_model(chapter):
    shares = {"baseline": a_share(0.312), "optimized": a_share(0.917)}
    keep(chapter, "h200", default=an_expectation(2.6, shares=shares))
    keep(chapter, "2xb200", default=an_expectation(3.4))
    assert row_of(chapter, "transpose")[2:] == ["3x", "2xB200 3.4x, H200 2.6x", "H200 31 % -> 92 %"]
    assert row_of(chapter, "transpose_wide")[3:] == ["not measured yet", "not measured yet"]


@pytest.mark.parametrize(("ratio", "cell", "is_said"), [(1.02, "H200 1.02x (or none)", True), (1.2, "H200 1.20x", False)])
def test_a_gain_whose_interval_holds_1_is_marked_and_the_mark_explained(chapter, ratio, cell, is_said):
    keep(chapter, default=an_expectation(ratio).model_copy(update={"ratio": an_interval(ratio, 0.05)}))
    assert row_of(chapter, "transpose")[3] == cell
    assert ("interval holds 1, `(or none)`" in (chapter / "README.md").read_text()) is is_said


def test_a_goal_other_than_time_is_what_the_row_shows(chapter):
    keep(chapter, default=an_expectation(3.1, goal="memory"))
    assert row_of(chapter, "transpose")[3] == "H200 3.1x memory"


def test_a_pair_with_named_shapes_has_a_row_each_with_its_own_prediction(chapter):
    text = OPTIMIZED.replace("3x, 36 bytes a float against 8", "1.9x at k = 8192 and 3x at 1024: later 2x")
    (chapter / "optimized_transpose.cu").write_text(text)
    deep, flat = {"m": 8192, "k": 8192}, {"m": 8192, "k": 1024}
    keep(chapter, deep=an_expectation(1.9, shape=deep), flat=an_expectation(1.9, shape=flat))
    head, _, first, second, *_ = rows_of(chapter)
    assert head == ["pair", "idea", "predicted", "measured", "share of ceiling"]
    assert first[0] == "[transpose](optimized_transpose.cu) @deep"
    assert second[:2] == ["transpose @flat", ""]
    assert [first[2:4], second[2:4]] == [["1.9x", "H200 1.90x"], ["3x (missed)", "H200 1.90x"]]


@pytest.mark.parametrize(("ratio", "cell"), [(2.41, "3x"), (3.74, "3x"), (2.39, "3x (missed)"), (3.76, "3x (missed)")])
def test_what_is_beyond_a_quarter_of_its_prediction_is_marked_as_missed(chapter, ratio, cell):
    keep(chapter, default=an_expectation(ratio).model_copy(update={"ratio": an_interval(ratio, 0.01)}))
    assert row_of(chapter, "transpose")[2] == cell


def test_a_miss_on_one_of_two_models_names_it(chapter):
    keep(chapter, "h100", default=an_expectation(3.0))
    keep(chapter, "h200", default=an_expectation(7.5))
    assert row_of(chapter, "transpose")[2] == "3x (missed on H200)"


@pytest.mark.parametrize(
    ("heading", "link"),
    [
        ("## `transpose`", "#transpose"),
        ("### transpose: a tile", "#transpose-a-tile"),
        ("## transpose_wide", "optimized_transpose.cu"),
        ("", "optimized_transpose.cu"),
    ],
)
def test_a_pair_is_linked_to_its_section_or_else_to_its_file(chapter, heading, link):
    (chapter / "README.md").write_text(f"{README}\n{heading}\n")
    assert row_of(chapter, "transpose")[0] == f"[transpose]({link})"


def test_pairs_stand_in_the_order_of_their_sections(chapter):
    (chapter / "README.md").write_text(f"{README}\n## transpose_wide\n\n## transpose\n")
    assert [row[0] for row in rows_of(chapter)[2:]] == ["[transpose_wide](#transpose_wide)", "[transpose](#transpose)"]
    (chapter / "README.md").write_text(f"{README}\n## transpose_wide\n")
    assert [row[0] for row in rows_of(chapter)[2:]] == ["[transpose_wide](#transpose_wide)", "[transpose](optimized_transpose.cu)"]


def test_the_anchor_of_a_section_is_as_github_names_it():
    assert sections("# Top\n\n## `a_b`, c!\n") == {"a_b": "a_b-c"}


def test_a_long_idea_is_cut_at_a_word_and_never_wider_than_a_cell(chapter):
    (chapter / "optimized_transpose.cu").write_text(OPTIMIZED.replace("a tile of `x` in shared memory | once.", f"{LONG}."))
    idea = row_of(chapter, "transpose")[1]
    assert idea == "a tile that lies in shared memory, whose rows every lane of…"
    assert len(shown(idea)) <= CELL


def test_a_converted_chapter_refuses_an_idea_that_is_too_long(chapter, capsys):
    (chapter / "README.md").write_text(FORM + README)
    assert pages.main([], chapter.parent) == 0, "short ideas are fine"
    (chapter / "optimized_transpose.cu").write_text(OPTIMIZED.replace("a tile of `x` in shared memory | once.", f"{LONG}."))
    assert pages.main([], chapter.parent) == 1
    told = capsys.readouterr().err
    assert "optimized_transpose.cu:1: found an idea of 17 words and 82 characters; expected at most 12 and 60" in told
    assert "ch07/README.md is of form 2" in told


def test_a_cell_holds_as_many_entries_as_have_room():
    entries = [f"H{number} 7.5x" for number in range(100, 112)]
    assert joined(entries[:5]) == ", ".join(entries[:5])
    assert joined(entries).endswith("H104 7.5x …")
    assert len(joined(entries)) <= CELL
    assert joined([]) == "not measured yet"


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.177, "0.18x"), (1.344, "1.34x"), (1.999, "2.0x"), (7.454, "7.5x"), (81.4, "81.4x"), (220.1, "220x")]
)
def test_a_ratio_has_as_few_digits_as_a_table_needs(ratio, text):
    assert ratio_text(ratio) == text


def test_a_ladder_has_a_table_of_its_steps_and_the_library_last(ladder):
    (ladder / "library_transpose.py").write_text('"""Library: torch."""\n')
    shares = {side: a_share(share) for side, share in zip((*LADDER_NS, "library"), (0.004, 0.53, 0.64, 0.8, 0.9), strict=True)}
    units = recorded_ladder({**LADDER_NS, "library": 50_000.0}, count=24)
    keep(ladder, default=an_expectation(units=units, shares=shares))
    found = rows_of(ladder)
    assert found[2][:2] == ["[transpose](optimized_transpose.cu)", "a ladder of 3 steps, below"]
    steps = found[[row[0] for row in found].index("step") + 2 :]
    assert steps == [
        ["[baseline](baseline_transpose.cu)", "plain", "", "H200 0.4 %"],
        ["[once](optimized_transpose_once.cu)", "once \\| read", "H200 1.33x", "H200 53 %"],
        ["[baseline_copy](../ch08/baseline_copy.cu)", "copied", "H200 1.20x", "H200 64 %"],
        ["[optimized](optimized_transpose.cu)", "a tile of `x` in shared memory \\| once", "H200 1.25x", "H200 80 %"],
        ["[library](library_transpose.py)", "torch", "", "H200 90 %"],
    ]


def test_a_step_from_elsewhere_may_be_longer_than_a_converted_chapters_own(ladder):
    (ladder / "README.md").write_text(FORM + README)
    (ladder.parent / "ch08/baseline_copy.cu").write_text(f"// Baseline: {LONG}.\n")
    assert pages.main([], ladder.parent) == 0
    assert row_of(ladder, "baseline_copy")[1] == "a tile that lies in shared memory, whose rows every lane of…"


def test_a_ladder_of_several_shapes_gives_its_figures_in_the_order_that_it_names(ladder):
    first = an_expectation(units=recorded_ladder(LADDER_NS, count=24))
    second = first.model_copy(update={"rungs": {side: rung for side, rung in first.rungs.items() if side != "once"}})
    keep(ladder, large=first, small=second)
    steps = {row[0].split("]")[0][1:]: row for row in rows_of(ladder)}
    assert "The ladder of `transpose`: a gain is over the step before. Figures are for @large, @small, in this order." in (
        (ladder / "README.md").read_text()
    )
    assert steps["once"][2] == "H200 1.33x / not accepted"
    assert steps["baseline_copy"][2:] == ["H200 1.20x / 1.20x", "not measured yet"]


def test_a_ladder_that_nobody_measured_says_so(ladder):
    steps = rows_of(ladder)[6:]
    assert [row[2:] for row in steps] == [["", "not measured yet"], *[["not measured yet", "not measured yet"]] * 3]
    assert "transpose_once" not in (ladder / "README.md").read_text().split("The ladder of")[0]


def test_a_rung_that_has_another_before_it_by_now_is_not_measured_yet(ladder):
    units = recorded_ladder({side: ns for side, ns in LADDER_NS.items() if side != "once"}, count=24)
    keep(ladder, default=an_expectation(units=units))
    steps = {row[0].split("]")[0][1:]: row for row in rows_of(ladder)}
    assert [steps[step][2] for step in ("once", "baseline_copy")] == ["not measured yet"] * 2
    assert steps["optimized"][2] == "H200 1.25x"
