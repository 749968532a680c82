"""A README's table is what its pairs say, is rewritten in place, and a README that differs fails the check."""

import math

import pytest

from common.python.gate.expectations import keep_expectations
from common.python.gate.statistics import median_ns, ratio_interval
from common.python.results import Share
from common.python.wording import interval_text, speedup_text
from tests.support.factories import an_expectation, recorded_ladder
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


def test_beside_it_stands_how_many_times_as_fast_as_the_library_it_is_by_the_units_of_the_same_run(chapter):
    units = recorded_ladder({"baseline": 80_000.0, "optimized": 40_000.0, "library": 50_000.0}, count=12)
    expected = an_expectation(units=units)
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"default": expected, "wide": an_expectation(2.31)})

    def measured():
        chapter_tables.main([], chapter.parent)
        row = next(line for line in (chapter / "README.md").read_text().splitlines() if line.startswith("| [transpose]"))
        return row.split(" | ")[3].split("; ")

    without = [f"H200: {speedup_text(expected.speedup)}", f"H200 @wide: {speedup_text(an_expectation(2.31).speedup)}"]
    assert measured() == without, "a pair whose library side is gone"

    (chapter / "library_transpose.py").write_text('"""Library: torch."""\n')
    interval = ratio_interval(units, "time", ("library", "optimized"))
    assert measured() == [f"{without[0]}, {speedup_text(interval)} of library", without[1]]
    ratios = [median_ns(unit, "library") / median_ns(unit, "optimized") for unit in units]
    assert interval.estimate == pytest.approx(math.prod(ratios) ** (1 / 12)) == pytest.approx(1.25, rel=5e-3)


def test_expectations_that_cannot_be_read_are_an_error(chapter, capsys):
    (chapter / "expectations_h200.json").write_text("{}")
    assert "expectations_h200.json: no schema_version" in refusal(chapter, capsys)


LADDER_NS = {"baseline": 80_000.0, "once": 60_000.0, "baseline_copy": 50_000.0, "optimized": 40_000.0}
LADDER_HEAD = (
    "\n\nThe ladder of `transpose`, each step against the one before it:\n\n"
    "| step | idea | expected | over the step before | time, share of ceiling |\n"
)


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


def cells_of(table):
    return [[cell.strip() for cell in line.split(" | ")] for line in table.partition("\n<!--")[0].splitlines()[1:]]


def test_a_ladder_that_was_measured_has_a_table_of_its_steps(ladder):
    shares = {
        side: Share(key="dram", share=share, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)
        for side, share in zip(LADDER_NS, (0.4, 0.53, 0.64, 0.8), strict=True)
    }
    first = an_expectation(units=recorded_ladder(LADDER_NS, count=24), shares=shares)
    small = an_expectation(units=recorded_ladder(LADDER_NS, count=24, seed=3))
    keep_expectations(ladder / "expectations_h200.json", "transpose", {"default": first, "small": small})
    assert chapter_tables.main([], ladder.parent) == 0

    before, table = (ladder / "README.md").read_text().split(LADDER_HEAD)
    assert before.endswith("| none |")
    found = cells_of(table)

    def ratio(side):
        return f"H200: {speedup_text(first.rungs[side].ratio)}; H200 @small: {speedup_text(small.rungs[side].ratio)}"

    def reached(side, share):
        times = [interval_text(each.sides[side].time_ns) for each in (first, small)]
        return f"H200: {times[0]}, {share} %; H200 @small: {times[1]} |"

    assert found == [
        ["| [baseline](baseline_transpose.cu)", "plain.", "", "", reached("baseline", 40)],
        ["| [once](optimized_transpose_once.cu)", "once \\| read.", "1.3x", ratio("once"), reached("once", 53)],
        ["| [baseline_copy](../ch08/baseline_copy.cu)", "copied.", "1.2x, copied", ratio("baseline_copy"), reached("baseline_copy", 64)],
        [
            "| [optimized](optimized_transpose.cu)",
            "the tile is turned in shared memory \\| once.",
            "3x, 36 bytes a float against 8",
            ratio("optimized"),
            reached("optimized", 80),
        ],
    ]
    assert speedup_text(first.rungs["once"].ratio).startswith("1.33")


def test_the_last_row_of_a_ladder_is_the_library(ladder):
    (ladder / "library_transpose.py").write_text('"""Library: torch | its own."""\n')
    times = {**LADDER_NS, "library": 50_000.0}
    share = Share(key="dram", share=0.64, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)
    first = an_expectation(units=recorded_ladder(times, count=24), shares={"library": share})
    keep_expectations(
        ladder / "expectations_h200.json", "transpose", {"default": first, "small": an_expectation(units=recorded_ladder(LADDER_NS))}
    )
    chapter_tables.main([], ladder.parent)

    link, idea, expected, ratio, reached = cells_of((ladder / "README.md").read_text().split(LADDER_HEAD)[1])[-1]
    assert (link, idea, expected) == ("| [library](library_transpose.py)", "torch \\| its own.", "")
    assert reached == f"H200: {interval_text(first.sides['library'].time_ns)}, 64 % |"
    interval = ratio_interval(recorded_ladder(times, count=24), "time", ("library", "optimized"))
    assert ratio == f"H200: optimized {speedup_text(interval)} of it"
    assert ratio.startswith("H200: optimized 1.2")


def test_every_step_of_a_ladder_says_how_many_times_as_fast_as_the_library_it_is(ladder):
    times = {**LADDER_NS, "library": 50_000.0}
    units, alone = recorded_ladder(times, count=24), recorded_ladder(LADDER_NS)
    rows = {"default": an_expectation(units=units), "small": an_expectation(units=alone)}
    keep_expectations(ladder / "expectations_h200.json", "transpose", rows)

    def reached():
        chapter_tables.main([], ladder.parent)
        found = cells_of((ladder / "README.md").read_text().split(LADDER_HEAD)[1])
        return {side: row[-1].removesuffix(" |").split("; ") for side, row in zip(times, found, strict=False)}

    without = {
        side: [f"H200{at}: {interval_text(row.sides[side].time_ns)}" for at, row in zip(("", " @small"), rows.values(), strict=True)]
        for side in LADDER_NS
    }
    assert reached() == without, "a pair without a library side"

    (ladder / "library_transpose.py").write_text('"""Library: torch."""\n')
    found = reached()
    ratios = {side: ratio_interval(units, "time", ("library", side)) for side in LADDER_NS}
    for side, (timed, timed_alone) in without.items():
        assert found[side] == [f"{timed}, {speedup_text(ratios[side])} of library", timed_alone], side
    assert ratios["once"].estimate == pytest.approx(5 / 6, rel=5e-3)
    assert "of library" not in " ".join(found["library"])


def test_a_rung_that_was_timed_and_not_accepted_says_so_beside_its_time(ladder):
    (ladder / "library_transpose.py").write_text('"""Library: torch."""\n')
    units = recorded_ladder({**LADDER_NS, "library": 50_000.0}, count=24)
    first = an_expectation(units=units)
    second = first.model_copy(update={"rungs": {side: rung for side, rung in first.rungs.items() if side != "once"}})
    keep_expectations(ladder / "expectations_h200.json", "transpose", {"default": first, "small": second})
    chapter_tables.main([], ladder.parent)

    once, after = cells_of((ladder / "README.md").read_text().split(LADDER_HEAD)[1])[1:3]
    assert once[3] == f"H200: {speedup_text(first.rungs['once'].ratio)}; H200 @small: not accepted"
    time = f"{interval_text(first.sides['once'].time_ns)}, {speedup_text(ratio_interval(units, 'time', ('library', 'once')))} of library"
    assert once[4] == f"H200: {time}; H200 @small: {time} |"
    assert "not accepted" not in after[3]


def test_a_row_that_knows_no_rungs_says_nothing_of_their_acceptance(ladder):
    expected = an_expectation(units=recorded_ladder(LADDER_NS, count=24)).model_copy(update={"rungs": {}})
    keep_expectations(ladder / "expectations_h200.json", "transpose", {"default": expected})
    chapter_tables.main([], ladder.parent)

    steps = cells_of((ladder / "README.md").read_text().split(LADDER_HEAD)[1])[1:]
    assert [row[3] for row in steps] == ["not measured yet"] * 3


def test_a_ladder_that_nobody_measured_says_what_is_expected_and_that_its_steps_have_no_rows(ladder):
    assert chapter_tables.main([], ladder.parent) == 0

    pairs, table = (ladder / "README.md").read_text().split(LADDER_HEAD)
    assert "transpose_once" not in pairs
    assert [row[2:] for row in cells_of(table)] == [
        ["", "", "not measured yet |"],
        *([expected, "not measured yet", "not measured yet |"] for expected in ("1.3x", "1.2x, copied", "3x, 36 bytes a float against 8")),
    ]


def test_a_step_that_predicts_nothing_is_an_error(ladder, capsys):
    workload = ladder / "workload_transpose.py"
    workload.write_text(workload.read_text().replace("  # expects: 1.2x, copied", ""))
    assert "baseline_copy.cu: found no `expects:` line; expected one, or `# expects:` behind this step" in refusal(ladder, capsys)


def test_a_rung_that_has_another_before_it_by_now_is_not_measured_yet(ladder):
    units = recorded_ladder({side: ns for side, ns in LADDER_NS.items() if side != "once"}, count=24)
    keep_expectations(ladder / "expectations_h200.json", "transpose", {"default": an_expectation(units=units)})
    chapter_tables.main([], ladder.parent)

    rows = [line for line in (ladder / "README.md").read_text().splitlines() if line.startswith(("| [once]", "| [baseline_copy]"))]
    assert [row.split(" | ")[3] for row in rows] == ["not measured yet"] * 2
