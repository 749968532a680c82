"""RESULTS.md has all that is known of a pair: times with intervals, the library, predictions, claims, and where it was measured."""

import math

import pytest

from common.python.gate.expectations import keep_expectations
from common.python.gate.statistics import median_ns, ratio_interval
from common.python.results import ReportedMetric, Share
from common.python.wording import interval_text, speedup_text
from tests.support.factories import a_provenance, an_expectation, recorded_ladder
from tests.tools.checks.conftest import LADDER_NS
from tools.checks import pages
from tools.checks.measured_pairs import place


def page_of(chapter):
    assert pages.main([], chapter.parent) == 0
    return (chapter / "RESULTS.md").read_text()


def section_of(chapter, name="transpose"):
    return page_of(chapter).split(f"\n## {name}\n")[1].split("\n## ")[0]


def table_of(section, where):
    """By side the cells of the table that is headed by that model and shape."""
    lines = section.split(f"**{where}**")[1].partition("\n\n")[2].split("\n\n")[0].splitlines()
    return {row[0]: row[1:] for row in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}


def keep(chapter, model="h200", **shapes):
    keep_expectations(chapter / f"expectations_{model}.json", "transpose", shapes)


def test_a_pair_that_nobody_measured_says_so_with_what_it_predicts_and_claims(chapter):
    section = section_of(chapter)
    assert "- [optimized](optimized_transpose.cu): a tile of `x` in shared memory | once.\n" in section
    assert "\n  - predicted: 3x, 36 bytes a float against 8\n" in section
    assert "\n\nNot measured yet.\n\n" in section
    assert "- proves, in launches: `launches == 1`\n" in section
    assert "- proves, in counters: `counter a < 0.2 x baseline`; not read yet\n" in section
    assert "- has, in machine code: `sts_128bit`\n" in section
    assert "Measured with" not in section
    assert "Claimed:\n\n- none" in section_of(chapter, "transpose_wide")


def test_a_timing_has_a_table_with_intervals_shares_and_memory(chapter):
    shares = {"optimized": Share(key="dram", share=0.917, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)}
    first, wide = an_expectation(2.31, shares=shares), an_expectation(1.5, goal="memory", cache="hot")
    keep(chapter, default=first, wide=wide)
    section = section_of(chapter)
    assert "**H200**: n = 1024, causal = True, eps = 1.0; clock `device`, caches cold.\n" in section
    assert table_of(section, "H200") == {
        "side": ["time", "speedup", "of library", "share of ceiling", "peak memory"],
        "---": ["---"] * 5,
        "baseline": [interval_text(first.sides["baseline"].time_ns), "", "", "not measured yet", "3.00 MiB (largest shape)"],
        "optimized": [
            interval_text(first.sides["optimized"].time_ns),
            speedup_text(first.speedup),
            "",
            "92 % of `dram`",
            "3.00 MiB (largest shape)",
        ],
    }
    assert "clock `device`, caches hot. Goal `memory`: 1.50x [1.50, 1.50] as good as the baseline.\n" in section
    assert "H200: predicted 3x, measured 2.31x: missed, 1.30 times apart." in section
    assert "Not measured yet" not in section


def with_peak(mebibytes):
    expected = an_expectation(2.0)
    sides = {side: kept.model_copy(update={"peak_memory_bytes": mebibytes << 20}) for side, kept in expected.sides.items()}
    return expected.model_copy(update={"sides": sides})


@pytest.mark.parametrize(
    ("peaks", "told"),
    [((3,), ["3.00 MiB"]), ((3, 3, 3), ["3.00 MiB (largest shape)", "", ""]), ((3, 4), ["3.00 MiB", "4.00 MiB"])],
    ids=["of one shape", "of one run", "of two runs"],
)
def test_a_peak_that_a_run_kept_for_all_its_shapes_stands_at_the_first(chapter, peaks, told):
    names = ("default", "wide", "odd")[: len(peaks)]
    keep(chapter, **{name: with_peak(peak) for name, peak in zip(names, peaks, strict=True)})
    section = section_of(chapter)
    for side in ("baseline", "optimized"):
        assert [table_of(section, place("h200", name))[side][4] for name in names] == told


def test_figures_of_the_workload_stand_below_the_table_and_the_goal_in_it_alone(chapter):
    def told(better="lower", **values):
        return {name: ReportedMetric(value=value, unit="nats", better=better) for name, value in values.items()}

    found = {"baseline": told(loss=1.0204, regret=3.0), "optimized": told(loss=1.0351, regret=2.0) | told("neither", best=8192.0)}
    keep(chapter, default=an_expectation(3.0).model_copy(update={"metrics": found, "goal": "regret"}))
    section = section_of(chapter)
    assert "\n- `loss`, nats: baseline 1.0204, optimized 1.0351; lower is better\n" in section
    assert "\n- `best`, nats: optimized 8192; neither way is better\n" in section
    assert "`regret`, nats" not in section
    keep(chapter, default=an_expectation(3.0))
    assert "self-reported" not in section_of(chapter)


def test_a_model_with_a_file_that_lacks_the_pair_says_so(chapter):
    keep(chapter, "h100", default=an_expectation(3.1))
    keep_expectations(chapter / "expectations_h200.json", "transpose_wide", {"default": an_expectation(4.0)})
    section = section_of(chapter)
    assert "\n\n**H200**: not measured yet.\n\n" in section
    assert "H100: predicted 3x, measured 3.10x: within 1.25 times." in section


@pytest.mark.parametrize(("own", "other"), [("h200", "2xh100"), ("2xh200", "h100")])
def test_nothing_is_said_of_a_model_whose_number_of_gpus_is_not_the_pairs(chapter, own, other):
    keep(chapter, own, default=an_expectation(3.1))
    keep_expectations(chapter / f"expectations_{other}.json", "transpose_wide", {"default": an_expectation(4.0)})
    assert f"**{place(other, 'default')}**" not in section_of(chapter)


def test_it_says_how_many_times_as_fast_as_the_library_a_side_is_by_the_units_of_the_same_run(chapter):
    units = recorded_ladder({"baseline": 80_000.0, "optimized": 40_000.0, "library": 50_000.0}, count=12)
    keep(chapter, default=an_expectation(units=units))
    assert table_of(section_of(chapter), "H200")["optimized"][2] == "", "a pair whose library side is gone"

    (chapter / "library_transpose.py").write_text('"""Library: torch."""\n')
    table = table_of(section_of(chapter), "H200")
    interval = ratio_interval(units, "time", ("library", "optimized"))
    assert table["optimized"][2] == speedup_text(interval)
    assert table["library"][1:3] == [speedup_text(ratio_interval(units, "time", ("baseline", "library"))), ""]
    ratios = [median_ns(unit, "library") / median_ns(unit, "optimized") for unit in units]
    assert interval.estimate == pytest.approx(math.prod(ratios) ** (1 / 12)) == pytest.approx(1.25, rel=5e-3)


def test_a_ladder_has_what_every_step_gained_and_what_was_predicted_of_it(ladder):
    first = an_expectation(units=recorded_ladder(LADDER_NS, count=24))
    second = first.model_copy(update={"rungs": {side: rung for side, rung in first.rungs.items() if side != "once"}})
    third = first.model_copy(update={"rungs": {}})
    keep(ladder, default=first, small=second, odd=third)
    section = section_of(ladder)
    assert "- [baseline_copy](../ch08/baseline_copy.cu): copied.\n  - predicted over the step before: 1.2x, copied\n" in section
    table = table_of(section, "H200")
    assert table["side"][2] == "over the step before"
    assert [row[2] for row in table.values()][2:] == ["", *(speedup_text(rung.ratio) for rung in first.rungs.values())]
    assert table_of(section, "H200 @small")["once"][2] == "not accepted"
    assert table_of(section, "H200 @odd")["once"][2] == "not measured yet"


def test_a_rung_that_has_another_before_it_by_now_and_one_that_is_new_are_not_measured_yet(ladder):
    units = recorded_ladder({side: ns for side, ns in LADDER_NS.items() if side != "once"}, count=24)
    keep(ladder, default=an_expectation(units=units))
    table = table_of(section_of(ladder), "H200")
    assert table["once"] == ["not measured yet", "", "", "", "", ""]
    assert table["baseline_copy"][2] == "not measured yet"


def test_a_claimed_counter_stands_beside_what_the_accepted_run_read(chapter):
    expected = an_expectation(3.0)
    counters = {"baseline": {"a": 200.0}, "optimized": {"a": 25.0}}
    sides = {side: kept.model_copy(update={"counters": counters[side]}) for side, kept in expected.sides.items()}
    keep(chapter, default=expected.model_copy(update={"sides": sides}))
    assert "`counter a < 0.2 x baseline`; H200: 0.125 x baseline\n" in section_of(chapter)


def test_it_says_where_it_was_measured_once_for_shapes_of_the_same_run(chapter):
    here = a_provenance(torch="2.11.0", commit="0123456789abcdef", date="2026-01-02T03:04:05")
    dirty = here.model_copy(update={"dirty": True, "torch": ""})
    rows = {shape: an_expectation(3.0, provenance=here) for shape in ("default", "wide")}
    keep(chapter, **rows, odd=an_expectation(3.0, provenance=dirty))
    lines = section_of(chapter).split("Measured with:\n\n")[1].splitlines()
    assert lines[:2] == [
        "- H200, H200 @wide: NVIDIA Test, driver 1, torch 2.11.0, commit 0123456789, 2026-01-02, 24 process pairs",
        "- H200 @odd: NVIDIA Test, driver 1, torch unknown, commit 0123456789 with changes, 2026-01-02, 24 process pairs",
    ]


def test_a_claim_that_is_none_is_an_error_that_names_the_file(chapter, capsys):
    text = (chapter / "optimized_transpose.cu").read_text()
    (chapter / "optimized_transpose.cu").write_text(text.replace("launches == 1", "launches are few"))
    assert pages.main([], chapter.parent) == 1
    assert "optimized_transpose.cu:3: found `proves: launches are few`" in capsys.readouterr().err


def test_an_edited_result_is_written_again_and_a_lost_page_too(chapter):
    keep(chapter, default=an_expectation(3.0))
    good = page_of(chapter)
    (chapter / "RESULTS.md").write_text(good.replace("3.0", "9.0"))
    assert page_of(chapter) == good
    (chapter / "RESULTS.md").unlink()
    assert page_of(chapter) == good
