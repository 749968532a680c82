"""Sweeps of times that are kept: what a record holds, which runs make one record, and how RESULTS.md shows it."""

import json
import re

import pytest

from common.python.errors import ExitCode
from common.python.pairs.predictions import card_of
from common.python.results import Interval, Metrics, Origin, Share
from common.python.storage import document_text, write_whole
from tests.support.factories import a_row, a_timing
from tests.support.factories import a_run as a_run_document
from tests.support.synthetic_ceilings import a_ceiling, synthetic_ceilings
from tests.tools.checks.test_load_pages import a_run as a_run_of_requests
from tools.campaign import keep_sweep
from tools.checks import pages
from tools.checks.sweep_pages import sweep_picture, sweep_records

ORIGIN = Origin(gpus=("NVIDIA H200 GPU-1",), commit="0123456789ab", date="2026-11-29T00:00:00", driver="580.1", torch="2.11.0")
TIMES = {256: (2e6, 2e6), 1024: (8e6, 2e6), 4096: (32e6, 16e6)}  # ns of both sides: gains of 1x, 4x and 2x
SHARE = Share(key="bf16", share=0.5, ceiling_ns=1e6, floor_ns=1e6, at_held_clock=None)


def a_run(path, *values, entry="tokens", origin=ORIGIN, width=64, sides=("baseline", "optimized"), target="ch07:transpose", **changes):
    """The metrics.json of a run with --sweep over these values."""
    timings = {
        f"{entry}={value}": a_timing(
            dict(zip(("baseline", "optimized", "library"), (*TIMES.get(value, (2e6, 1e6)), 3e6), strict=True)),
            **{"shape": {entry: value, "width": width}, "shares": {"optimized": SHARE}} | changes,
        )
        for value in values
    }
    timings = {
        name: timing.model_copy(
            update={
                "time_ns": {side: timing.time_ns[side] for side in sides},
                "speedups": {side: own for side, own in timing.speedups.items() if side in sides},
            }
        )
        for name, timing in timings.items()
    }
    row = a_row(target, timings=timings, origin=origin, workload_file="ch07/workload_transpose.py")
    write_whole(path, document_text(Metrics(run_id="20261129_000000", rows=(row,))))
    return path


def kept(chapter, *runs, hidden=()):
    return keep_sweep.main([*hidden, *(str(run) for run in runs)], chapter.parent)


def the_sweep(chapter):
    (sweep,) = sweep_records(chapter)["transpose"]
    return sweep


def results(chapter):
    assert pages.main([], chapter.parent) == 0
    return (chapter / "RESULTS.md").read_text().split("\n## transpose\n")[1].split("\n## ")[0]


def test_a_sweep_becomes_a_record_with_a_line_a_value_rising(chapter, tmp_path):
    assert kept(chapter, a_run(tmp_path / "a.json", 4096, 256)) == 0
    sweep = the_sweep(chapter)
    assert (sweep.entry, sweep.shape, sweep.key) == ("tokens", {"width": 64}, "h200")
    assert [each.value for each in sweep.values] == [256, 4096]
    assert sweep.values[1].sides["baseline"].time_ns.estimate == 32e6
    assert sweep.values[1].sides["optimized"].speedup == Interval(estimate=2.0, low=1.97, high=2.03)
    assert sweep.values[1].sides["baseline"].speedup is None
    assert (chapter / "sweeps_h200.json").is_file()


def test_a_sweep_of_several_gpus_is_a_file_of_its_own(chapter, tmp_path):
    two = ORIGIN.model_copy(update={"gpus": ("NVIDIA H200 GPU-1", "NVIDIA H200 GPU-2")})
    kept(chapter, a_run(tmp_path / "a.json", 256), a_run(tmp_path / "b.json", 256, origin=two))
    assert {path.name for path in chapter.glob("sweeps_*")} == {"sweeps_h200.json", "sweeps_2xh200.json"}


def test_two_entries_of_a_pair_are_two_records_and_a_later_run_takes_the_place_of_its_own(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 256, 1024), a_run(tmp_path / "b.json", 8, 16, entry="width_of_tiles"))
    kept(chapter, a_run(tmp_path / "c.json", 4096))
    assert {sweep.entry: [each.value for each in sweep.values] for sweep in sweep_records(chapter)["transpose"]} == {
        "tokens": [4096],
        "width_of_tiles": [8, 16],
    }


def test_runs_of_requests_and_of_times_are_kept_in_one_call(chapter, tmp_path):
    assert kept(chapter, a_run(tmp_path / "a.json", 256), a_run_of_requests(tmp_path / "b.json", 0.5)) == 0
    assert {path.name for path in chapter.glob("*_h200.json")} == {"sweeps_h200.json", "loads_h200.json"}


@pytest.mark.parametrize(
    ("value", "changes", "told"),
    [
        (1024, {"width": 32}, "its shape is width=32; expected width=64"),
        (1024, {"mode": "sustained"}, "its mode is sustained, clock device, caches cold, goal time; expected burst, clock device"),
        (1024, {"origin": ORIGIN.model_copy(update={"commit": "f" * 40})}, "its commit is ffffffffff; expected 0123456789"),
        (256, {}, "tokens=256 is in the run before it too; expected each value once"),
    ],
)
def test_runs_that_differ_in_more_than_their_values_are_no_record(chapter, tmp_path, capsys, value, changes, told):
    first, second = a_run(tmp_path / "a.json", 256), a_run(tmp_path / "b.json", value, **changes)
    assert kept(chapter, first, second) == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"b.json: ch07:transpose: {told}" in error
    assert len(error.splitlines()) == 1
    assert not list(chapter.glob("sweeps_*"))


def test_a_sweep_that_was_cut_in_two_is_one_record(chapter, tmp_path):
    assert kept(chapter, a_run(tmp_path / "a.json", 256, 4096), a_run(tmp_path / "b.json", 1024)) == 0
    assert [each.value for each in the_sweep(chapter).values] == [256, 1024, 4096]


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda path: a_run(path, 256, origin=Origin()), "found a row that no GPU made; expected times of a GPU"),
        (lambda path: a_run(path, 256, device="cpu"), "found a row that no GPU made"),
        (lambda path: a_run(path, 256, sides=("baseline",)), "found no optimized side; expected a sweep of a whole pair"),
        (lambda path: write_whole(path, a_run(path, 256).read_text().replace("tokens=256", "default")), "found no swept entry; expected"),
        (lambda path: write_whole(path, "{"), "expected a whole JSON document"),
    ],
)
def test_a_run_with_nothing_to_keep_is_named_in_a_sentence(chapter, tmp_path, capsys, made, told):
    made(tmp_path / "bad.json")
    assert kept(chapter, a_run(tmp_path / "good.json", 1024), tmp_path / "bad.json") == ExitCode.USAGE
    error = capsys.readouterr().err
    assert f"{tmp_path / 'bad.json'}" in error
    assert told in error
    assert not list(chapter.glob("sweeps_*"))


def test_results_have_a_table_and_a_picture_of_the_sweep(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 256, 1024, 4096))
    section = results(chapter)
    assert (
        "**H200, by `tokens`**: width = 64; clock `device`, caches cold, mode burst. The largest speedup measured is at tokens = 1024."
        in section
    )
    assert "| tokens | side | time | speedup | tokens per s | share of ceiling |" in section
    assert "| 1024 | baseline | 8.00 ms [7.92, 8.08] |  | 128000 |  |" in section
    assert "| 1024 | optimized | 2.00 ms [1.98, 2.02] | 4.00x [3.97, 4.03] | 512000 | 50 % of `bf16` |" in section
    assert "- Measured with NVIDIA H200, driver 580.1, torch 2.11.0, commit 0123456789, 2026-11-29, 6 process pairs a value" in section
    assert "](sweep_transpose_tokens_h200.svg)" in section
    assert (chapter / "sweep_transpose_tokens_h200.svg").read_text().startswith("<svg")
    assert pages.main(["--check"], chapter.parent) == 0


def test_an_entry_that_counts_nothing_has_no_rate_and_a_single_value_no_picture(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 256, entry="depth"))
    section = results(chapter)
    assert "| depth | side | time | speedup | share of ceiling |" in section
    assert not list(chapter.glob("*.svg"))


def test_another_goal_than_time_has_its_figures(chapter, tmp_path):
    figures = {side: Interval(estimate=value, low=value, high=value) for side, value in (("baseline", 2**32), ("optimized", 2**31))}
    gains = {"optimized": Interval(estimate=2.0, low=2.0, high=2.0)}
    kept(chapter, a_run(tmp_path / "a.json", 256, goal="memory", unit="bytes", figures=figures, gains=gains))
    section = results(chapter)
    assert "| memory (goal) | gain |" in section
    assert "| 2.00 GiB | 2.00x [2.00, 2.00] |" in section


def test_words_of_an_entry_keep_their_order(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", "nvl72", "plain", entry="preset"))
    assert "| plain | optimized |" in results(chapter)
    places = re.findall(r'text-anchor="middle">(nvl72|plain)<', sweep_picture("x", the_sweep(chapter)))
    assert places[:2] == ["nvl72", "plain"]


def test_what_a_pair_predicts_stands_beside_it_only_where_the_equation_has_the_entry(chapter, tmp_path):
    (chapter / "workload_transpose.py").write_text('"""T."""\nWorkload(time_at={"tokens": 256, "width": 64})\n')
    bf16 = card_of("h200").values["bf16"]
    (chapter / "optimized_transpose.cu").write_text(
        f"// Optimized: a tile.\n// predicts: baseline 1 ms = tokens * width * {bf16 / 16384e3!r} / bf16\n"
        "// predicts: optimized 2 ms = 2e-3 on h200\n// predicts: library 1 ms = tokens * 3.90625e-6 on h100\n// has: sts_128bit\n"
    )
    sides = ("baseline", "optimized", "library")
    kept(chapter, a_run(tmp_path / "a.json", 256, 1024, sides=sides))
    (chapter / "library_transpose.cu").write_text("// Library: theirs.\n")
    cells = [line.split(" | ")[-1].strip(" |") for line in results(chapter).splitlines() if line.startswith(("| 256 |", "| 1024 |"))]
    assert cells == ["1.00 ms", "", "", "4.00 ms", "", ""]
    kept(chapter, a_run(tmp_path / "b.json", 256, 1024, sides=sides, width=32))  # numbers of equations are of the pair's own shape
    assert "predicted** is" not in results(chapter)


def test_the_share_that_is_hidden_is_what_was_saved_of_the_equation(chapter, tmp_path, capsys):
    run = a_run(tmp_path / "a.json", 256, 1024)
    assert kept(chapter, run, hidden=("--hidden", "tokens * 12e-3 / 1024")) == 0  # of 3 ms nothing was saved, of 12 ms 6
    section = results(chapter)
    assert "**hidden** is the time saved over the baseline, as a share of `tokens * 12e-3 / 1024`." in section
    assert "| 50.0 % [49.9, 50.1] |" in section
    assert "| 0 % [-2, 2] |" in section
    assert ">hidden</text>" in (chapter / "sweep_transpose_tokens_h200.svg").read_text()
    for equation, told in (("tokens / no_such", "found 'no_such' in"), ("0 * tokens", "expected a time above 0")):
        assert kept(chapter, run, hidden=("--hidden", equation)) == ExitCode.USAGE
        assert told in capsys.readouterr().err
    assert kept(chapter, a_run_of_requests(tmp_path / "b.json", 0.5), hidden=("--hidden", "1")) == ExitCode.USAGE
    assert "found --hidden with a sweep of arrival_poisson" in capsys.readouterr().err


def of_a_machine(folder, *values, h2d, measured="2026-01-02", uuid="GPU-1"):
    """The metrics.json of a run whose run.json has ceilings of a GPU."""
    origin = ORIGIN.model_copy(update={"ceilings": "2026-01-02"})
    ceilings = synthetic_ceilings(machine=uuid, measured=measured, ceilings=(a_ceiling("h2d", h2d, "bytes/s"),))
    folder.mkdir()
    write_whole(folder / "run.json", document_text(a_run_document(ceilings={"cuda": ceilings.model_dump(mode="json")})))
    return a_run(folder / "metrics.json", *values, origin=origin)


def test_what_is_hidden_is_relative_to_the_ceilings_of_the_runs_own_machine(chapter, tmp_path):
    own, other = of_a_machine(tmp_path / "a", 1024, h2d=40e9), of_a_machine(tmp_path / "b", 4096, h2d=80e9)
    assert kept(chapter, own, other, hidden=("--hidden", "8e-3 * 40e9 / h2d")) == 0  # of 8 ms 6 were saved, of 4 ms 16
    section = results(chapter)
    assert "as a share of `8e-3 * 40e9 / h2d`, where `h2d` = 40 GB/s or 80 GB/s on that machine." in section
    assert "| 75.0 % [74.8, 75.2] |" in section
    assert "| 400 % [" in section


@pytest.mark.parametrize("changes", [{"measured": "2026-01-03"}, {"uuid": "GPU-2"}])
def test_ceilings_that_are_none_of_the_rows_give_no_constants(chapter, tmp_path, changes):
    run = of_a_machine(tmp_path / "a", 1024, h2d=40e9, **changes)
    assert kept(chapter, run, hidden=("--hidden", "1e9 / h2d")) == 0
    assert the_sweep(chapter).values[0].own == {}
    assert "as a share of `1e9 / h2d`, with the constants of the model's card, of another GPU." in results(chapter)


def test_the_slower_side_lies_higher_and_bars_hold_their_dots(chapter, tmp_path):
    kept(chapter, a_run(tmp_path / "a.json", 1024, 4096))
    svg = sweep_picture("x", the_sweep(chapter))
    dots = [(float(x), float(y), told) for x, y, told in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"[^>]*><title>([^<]*)', svg)]
    bars = [(float(x), float(top), float(low)) for x, low, top in re.findall(r'<path d="M([\d.]+) ([\d.]+)V([\d.]+)" stroke', svg)]
    assert len(dots) == len(bars) == 2 * 2 + 2  # times of both sides and a speedup, at two values
    assert all(x == at and top <= y <= low for (x, y, _), (at, top, low) in zip(dots, bars, strict=True))
    height = {told: y for _, y, told in dots}
    assert height["baseline, tokens = 1024: 8.00 ms [7.92, 8.08]"] < height["optimized, tokens = 1024: 2.00 ms [1.98, 2.02]"]


@pytest.mark.parametrize(("values", "apart"), [((256, 512, 768), 1.0), ((256, 1024, 4096), 1.0), ((256, 512, 2048), 2.0)])
def test_values_over_a_factor_of_8_stand_on_a_logarithmic_axis(chapter, tmp_path, values, apart):
    kept(chapter, a_run(tmp_path / "a.json", *values))
    svg = sweep_picture("x", the_sweep(chapter))
    first, second, third = (float(re.search(rf'<text x="([\d.]+)" y="302" text-anchor="middle">{value}<', svg)[1]) for value in values)
    assert (third - second) / (second - first) == pytest.approx(apart, rel=0.02)


def test_a_file_of_another_model_or_of_no_sweeps_is_named(chapter, tmp_path, capsys):
    kept(chapter, a_run(tmp_path / "a.json", 256))
    (chapter / "sweeps_h200.json").rename(chapter / "sweeps_h100.json")
    assert pages.main([], chapter.parent) == ExitCode.USAGE
    assert "sweeps_h100.json: found sweeps of 'h200'; expected the file's name to be sweeps_h200.json" in capsys.readouterr().err
    (chapter / "sweeps_h100.json").write_text(json.dumps({"schema_version": 1, "gpu": "h100", "pairs": {"transpose": {"n": {}}}}))
    assert pages.main([], chapter.parent) == ExitCode.USAGE
    assert "sweeps_h100.json: " in capsys.readouterr().err
