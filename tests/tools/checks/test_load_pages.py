"""Loads that are kept: what a record holds of a sweep, which runs make one record, and how RESULTS.md shows it."""

import json
import re
from itertools import pairwise

import pytest

from common.python.errors import ExitCode
from common.python.gate.expectations import keep_expectations
from common.python.results import Interval, Metrics, Origin, ServingFigures
from common.python.storage import document_text, write_whole
from tests.support.factories import a_row, a_timing, an_expectation
from tools.campaign import keep_sweep
from tools.checks import pages
from tools.checks.load_pages import load_picture, load_records

SATURATION = 40.0
ORIGIN = Origin(gpus=("NVIDIA H200 GPU-1",), commit="0123456789ab", date="2026-11-29T00:00:00", driver="580.1", torch="2.11.0")


def near(value):
    return Interval(estimate=value, low=0.9 * value, high=1.1 * value)


def served(load, slower=1.0, **changes):
    """What both sides' requests saw at a load; the baseline takes twice as long."""
    figures = {
        side: {
            "ttft_ms.p50": near(100 * load * factor * slower),
            "ttft_ms.p95": near(300 * load * factor * slower),
            "tpot_ms.p50": near(5.0),
            "itl_ms.p95": near(9.0),
            "e2e_ms.p50": near(900.0),
            "output_tokens_per_s": near(1000.0 * load),
            "requests_per_s": near(SATURATION * load),
            "goodput": near(0.95),
        }
        for side, factor in (("baseline", 2), ("optimized", 1))
    }
    known = {"figures": figures, "offered_per_s": load * SATURATION or None, "saturation_per_s": SATURATION if load else None}
    return ServingFigures(**({"slo_ttft_ms": 200.0, "slo_tpot_ms": 10.0} | known | changes))


def at_one_load(path, load, *names):
    """The metrics.json of a run of several pairs with --kwargs at this load: one timing each, at the pair's own shape."""
    timing = a_timing().model_copy(update={"shape": {"requests": 96, "arrival_poisson": load}, "serving": served(load)})
    made = (a_row(f"ch07:{name}", timings={"default": timing}, origin=ORIGIN, workload_file=f"ch07/workload_{name}.py") for name in names)
    write_whole(path, document_text(Metrics(run_id="20261129_000000", rows=tuple(made))))
    return path


def a_run(path, *loads, origin=ORIGIN, requests=96, **changes):
    """The metrics.json of a run with --sweep over these loads."""
    timings = {
        f"arrival_poisson={load}": a_timing().model_copy(
            update={"shape": {"requests": requests, "arrival_poisson": load}, "serving": served(load, **changes)}
        )
        for load in loads
    }
    row = a_row("ch07:transpose", timings=timings, origin=origin, workload_file="ch07/workload_transpose.py")
    write_whole(path, document_text(Metrics(run_id="20261129_000000", rows=(row,))))
    return path


def kept(chapter, *runs):
    return keep_sweep.main([str(run) for run in runs], chapter.parent)


def test_a_sweep_becomes_a_record_with_a_line_a_load_and_no_other_figures(chapter, tmp_path):
    assert kept(chapter, a_run(tmp_path / "a.json", 1.0, 0.5)) == 0
    sweep = load_records(chapter)["transpose"]["h200"]
    assert sweep.shape == {"requests": 96}
    assert [(each.load, each.offered_per_s, each.saturation_per_s) for each in sweep.loads] == [(0.5, 20, 40), (1.0, 40, 40)]
    assert sweep.loads[0].sides["baseline"]["ttft_ms.p95"] == near(300.0)
    assert "e2e_ms.p50" not in sweep.loads[0].sides["baseline"]
    assert sweep.origins == (ORIGIN,)


def test_a_sweep_that_was_cut_in_two_is_one_record_and_a_later_one_takes_its_place(chapter, tmp_path):
    assert kept(chapter, a_run(tmp_path / "a.json", 0.5, 1.2), a_run(tmp_path / "b.json", 0.8, 1.0)) == 0
    assert [each.load for each in load_records(chapter)["transpose"]["h200"].loads] == [0.5, 0.8, 1.0, 1.2]
    assert kept(chapter, a_run(tmp_path / "c.json", 0.8)) == 0
    assert [each.load for each in load_records(chapter)["transpose"]["h200"].loads] == [0.8]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"requests": 48}, "its shape is requests=48; expected requests=96"),
        ({"slo_ttft_ms": 100.0}, "its service level is 100 and 10 ms; expected 200 and 10 ms"),
        ({"origin": ORIGIN.model_copy(update={"commit": "f" * 40})}, "its commit is ffffffffff; expected 0123456789"),
        ({"origin": ORIGIN.model_copy(update={"torch": "2.9"})}, "its torch is 2.9; expected 2.11.0"),
        ({}, "arrival_poisson=0.5 is in the run before it too; expected each value once"),
    ],
)
def test_runs_that_differ_in_more_than_their_loads_are_no_record(chapter, tmp_path, capsys, changes, told):
    first = a_run(tmp_path / "a.json", 0.5)
    second = a_run(tmp_path / "b.json", 0.8 if changes else 0.5, **changes)
    assert kept(chapter, first, second) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"b.json: ch07:transpose: {told}" in error
    assert len(error.splitlines()) == 1
    assert not list(chapter.glob("loads_*"))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda path: a_run(path, 0.5, origin=Origin()), "found a row that no GPU made; expected loads of a GPU"),
        (lambda path: a_run(path, 0.5, origin=None), "found a row that no GPU made"),
        (lambda path: a_run(path, 0.0), "found no requests at a share of saturation; expected a run with --sweep arrival_poisson="),
        (lambda path: write_whole(path, "{"), "expected a whole JSON document"),
        (lambda path: write_whole(path, a_run(path, 0.5).read_text().replace("ch07/", "ch99/")), "found no ch99/workload_transpose.py"),
        (lambda path: None, "is missing"),
    ],
)
def test_a_run_with_nothing_to_keep_is_named_in_a_sentence(chapter, tmp_path, capsys, made, told):
    made(tmp_path / "bad.json")
    assert kept(chapter, a_run(tmp_path / "good.json", 0.5), tmp_path / "bad.json") == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"{tmp_path / 'bad.json'}" in error
    assert told in error
    assert not list(chapter.glob("loads_*"))  # all or none


def test_results_have_a_table_and_a_picture_of_the_loads(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 0.5, 0.8))
    assert pages.main([], chapter.parent) == 0
    section = (chapter / "RESULTS.md").read_text().split("\n## transpose\n")[1].split("\n## ")[0]
    assert "**H200, by load**: requests = 96. Load is a share of the baseline's closed-loop throughput, 40.0 requests/s." in section
    assert "within 200 ms to the first token and 10 ms for each token after it." in section
    assert "| 0.5 | baseline | 20.0 | 100 [90, 110] | 300 [270, 330] | 5.00 [4.50, 5.50] |" in section
    assert "| 95.0 % [85.5, 100.0] |" in section  # no share is more than all
    assert "- Measured with NVIDIA H200, driver 580.1, torch 2.11.0, commit 0123456789, 2026-11-29, " in section
    assert "](loads_transpose_h200.svg)" in section
    assert (chapter / "loads_transpose_h200.svg").read_text().startswith("<svg")
    assert pages.main(["--check"], chapter.parent) == 0
    assert "by load" not in (chapter / "RESULTS.md").read_text().split("\n## transpose_wide\n")[1]


def test_a_single_load_is_a_table_without_a_picture(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 0.8))
    pages.main([], chapter.parent)
    text = (chapter / "RESULTS.md").read_text()
    assert "| 0.8 | optimized |" in text
    assert "loads_transpose" not in text
    assert not list(chapter.glob("*.svg"))


def test_one_run_of_a_chapter_at_0_8_is_one_table_of_all_its_pairs(chapter, tmp_path):
    (chapter / "workload_transpose_wide.py").write_text('"""Wide."""\n')
    (chapter / "baseline_transpose_wide.py").write_text('"""Baseline: Wide."""\n')
    (chapter / "workload_transpose.py").write_text('"""Serves; `arrival_poisson` is the load."""\n')
    kept(chapter, at_one_load(tmp_path / "a.json", 0.8, "transpose_wide"))
    served_at = r"(?s)## Served at 0.8 of saturation\n(.*?)\n## transpose\n"
    pages.main([], chapter.parent)
    section = re.search(served_at, (chapter / "RESULTS.md").read_text())[1]
    assert "| [transpose](#transpose) |  |  | not measured yet |  |  |  |  |" in section
    assert kept(chapter, at_one_load(tmp_path / "a.json", 0.8, "transpose", "transpose_wide")) == 0
    pages.main([], chapter.parent)
    lines = re.search(served_at, (chapter / "RESULTS.md").read_text())[1].split("| --- |\n")[1].splitlines()
    assert [line.split(" | ")[:3] for line in lines if line] == [
        [f"| [{name}](#{name})", "H200", side] for name in ("transpose", "transpose_wide") for side in ("baseline", "optimized")
    ]
    assert lines[1].endswith("| 80.0 [72.0, 88.0] | 240 [216, 264] | 5.00 [4.50, 5.50] | 800 [720, 880] | 95.0 % [85.5, 100.0] |")


def test_an_accepted_row_at_0_8_needs_no_record(chapter, tmp_path):
    accepted = an_expectation(2.0).model_copy(
        update={"shape": {"requests": 96, "arrival_poisson": 0.8}, "figures": {"baseline": {"ttft_ms.p50": near(29.9)}}}
    )
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"default": accepted})
    pages.main([], chapter.parent)
    line = "| [transpose](#transpose) | H200 | baseline | {} |"
    assert line.format("29.9 [26.9, 32.9] |  |  | ") in (chapter / "RESULTS.md").read_text()
    kept(chapter, a_run(tmp_path / "a.json", 0.8))
    pages.main([], chapter.parent)
    assert (
        line.format("160 [144, 176] | 480 [432, 528] | 5.00 [4.50, 5.50] | 800 [720, 880] | 95.0 % [85.5, 100.0]")
        in (chapter / "RESULTS.md").read_text()
    )


def test_pairs_at_other_loads_are_in_no_table_of_0_8(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 0.5, 1.0))
    pages.main([], chapter.parent)
    assert "## Served" not in (chapter / "RESULTS.md").read_text()


def test_the_slower_side_lies_higher_and_bars_hold_their_dots(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 0.5, 0.8))
    svg = load_picture("x", load_records(chapter)["transpose"]["h200"])
    dots = [(float(x), float(y), told) for x, y, told in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*><title>([^<]*)', svg)]
    bars = [(float(x), float(top), float(low)) for x, low, top in re.findall(r'<path d="M([\d.]+) ([\d.]+)V([\d.]+)" stroke', svg)]
    assert len(dots) == len(bars) == 4 * 2 * 2  # panels, sides, loads
    assert all(x == at and top < y < low for (x, y, told), (at, top, low) in zip(dots, bars, strict=True) if "%" not in told)
    baseline, optimized = (
        next(y for _, y, told in dots if told.startswith((f"{side}: 1", f"{side}: 5"))) for side in ("baseline", "optimized")
    )
    assert baseline < optimized  # y grows downwards


def test_a_file_of_another_model_or_of_no_loads_is_named(chapter, tmp_path, capsys):
    kept(chapter, a_run(tmp_path / "a.json", 0.5))
    (chapter / "loads_h200.json").rename(chapter / "loads_h100.json")
    assert pages.main([], chapter.parent) == ExitCode.USAGE
    assert "loads_h100.json: found loads of 'h200'; expected the file's name to be loads_h200.json" in capsys.readouterr().err
    (chapter / "loads_h100.json").write_text(json.dumps({"schema_version": 1, "gpu": "h100", "pairs": {"transpose": {}}}))
    assert pages.main([], chapter.parent) == ExitCode.USAGE
    assert "loads_h100.json: " in capsys.readouterr().err


def test_labels_of_near_loads_do_not_cover_each_other(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 0.5, 1.0, 1.05, 1.1))
    svg = load_picture("x", load_records(chapter)["transpose"]["h200"])
    labels = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle">([\d.]+)</text>', svg)[:4]  # of the first panel
    assert [label for _, _, label in labels] == ["0.5", "1", "1.05", "1.1"]
    for row in {y for _, y, _ in labels}:
        spans = [(float(x) - 3 * len(label), float(x) + 3 * len(label)) for x, y, label in labels if y == row]
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
