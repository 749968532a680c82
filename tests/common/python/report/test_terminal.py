"""One live line on a terminal, plain lines in a pipe, a table that fits, and reasons in whole sentences."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from common.python.errors import ExitCode, Status
from common.python.report.documents import Outcome, outcome_of, print_document
from common.python.report.terminal import Progress, broken, console_for, print_ceilings, print_results
from common.python.results import Share
from common.python.settings import Settings
from tests.support.factories import a_failure, a_proof, a_row, a_run, a_timing, a_verdict
from tests.support.profiles import profiled_row
from tests.support.synthetic_ceilings import CEILINGS, a_ceiling, synthetic_ceilings

LONG = "ch10:warp_specialized_two_pipelines_multistream"
REASON = "y[3] is 1 in partial[rows * 4] of [bold]baseline[/bold] :smile: /tmp/x; " + "expected 2 " * 20 + "[/]"


def a_console(width=80, *, terminal=False):
    return Console(
        file=io.StringIO(), width=width, force_terminal=terminal, highlight=False, markup=False, emoji=False, _environ={"TERM": "xterm"}
    )


def shown(rows, width, *, terminal=False, verbose=False, **changes):
    console = a_console(width, terminal=terminal)
    print_results(rows, a_run(**changes), console, verbose=verbose)
    return console.file.getvalue()


ROWS = [
    a_row(verdicts={"default": a_verdict("INCONCLUSIVE", "about 14 more units")}),
    a_row(LONG, timings={"default": a_timing({"baseline": 101_300.0, "optimized": 100_100.0})}, proofs=(a_proof(),)),
    a_row("ch14:add_baseline", timings={"cpu": a_timing({"baseline": 5.25e6})}),
    a_failure(reason=REASON),
    a_failure(Status.SKIPPED, target="ch10:tmem_triple_overlap", reason="needs tensor memory; this is 9.0", proofs=(a_proof(),)),
]


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_fits_and_no_number_is_broken(width):
    text = shown(ROWS, width, terminal=True)
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)

    assert max(cell_len(line) for line in plain.splitlines()) <= width
    for figure in ("84.7 µs", "36.7 µs", "2.31x [2.28, 2.34]", "INCONCLUSIVE", "5.25 ms", "1.01x [0.98, 1.04]", "WRONG_RESULT", "SKIPPED"):
        assert figure in plain


def test_a_wide_table_says_more_and_keeps_names_whole():
    narrow, wide = shown(ROWS, 80), shown(ROWS, 140)

    assert LONG in wide
    assert "proofs" in wide.split("\n\n")[1]
    assert "conditions" not in narrow
    assert "proofs" not in narrow.split("\n\n")[1]


def test_a_run_against_another_revision_names_it_above_its_column():
    printed = shown([a_row()], 140, settings=Settings(against="HEAD~1"), against="a" * 40)

    assert "baseline: each pair's own optimized side at HEAD~1 (commit aaaaaaaaaa)\n" in printed
    assert re.search(r"^target +at HEAD~1 +now +speedup", printed, re.MULTILINE)
    assert re.search(r"^target +baseline +optimized +speedup", shown([a_row()], 140), re.MULTILINE)


def test_the_share_of_the_ceiling_stands_beside_the_speedup_where_there_is_room():
    shares = {
        "baseline": Share(key="dram", share=0.041, ceiling_ns=1e3, floor_ns=1e3, at_held_clock=None),
        "optimized": Share(key="dram", share=0.934, ceiling_ns=1e3, floor_ns=1e3, at_held_clock=None),
    }
    row, half = a_row(timings={"default": a_timing(shares=shares)}), a_row("ch07:copy_optimized", timings={"default": _a_half(shares)})

    assert "2.31x [2.28, 2.34]  4.1 % → 93 %  PASSED" in shown([row, half], 140)
    assert "ch07:copy_optimized 36.7 µs 93 % PASSED" in " ".join(shown([row, half], 140).split())
    assert "share" not in shown([row, half], 60)
    assert "share" not in shown([a_row()], 140)


def _a_half(shares):
    return a_timing({"optimized": 36_700.0}, shares={"optimized": shares["optimized"]})


def test_ceilings_are_a_table_with_what_is_missing_and_the_file():
    console = a_console(140)
    bf16 = a_ceiling("bf16", 799e12, "flop/s", l2="clean")
    found = synthetic_ceilings(ceilings=(bf16, *CEILINGS[:1]), missing={"fp4": "needs compute capability 10.0"}, notes=("hot",))
    print_ceilings(found, Path("artifacts/machines/GPU-synthetic.json"), console)
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]

    assert lines == [
        "",
        "a GPU that does not exist, driver 1.0, torch 2.0, 2026-01-02T03:04:05+00:00, 1 s",
        "ceiling value half-width mode L2 before SM clock samples how",
        "bf16 799 TFLOP/s 1.00 % burst clean 2000 MHz 12 made up",
        "dram_read 4.00 TB/s 1.00 % burst clean 12 made up",
        "not measured: fp4: needs compute capability 10.0",
        "hot",
        "artifacts/machines/GPU-synthetic.json",
    ]


def test_a_very_narrow_table_drops_times_before_the_speedup():
    table = shown([a_row()], 45).split("\n\n")[1]

    assert "2.31x [2.28, 2.34]" in table
    assert "84.7" not in table
    assert "36.7" not in table


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("ch10:pair @large", 20, ["ch10:pair @large"]),
        ("labs/ultimate_moe_inference:layer3_pipelining", 24, ["labs/ultimate_moe_", "inference:layer3_", "pipelining"]),
        ("ch10:pair @large", 10, ["ch10:pair", "@large"]),
        ("\N{BOX DRAWINGS LIGHT UP AND RIGHT} library", 9, ["\N{BOX DRAWINGS LIGHT UP AND RIGHT} library"]),
        ("ch10:multistream", 8, ["ch10:", "multistream"]),  # a word that fits nowhere is left to the table
        ("", 8, [""]),
    ],
)
def test_a_name_is_broken_between_its_words(name, width, lines):
    assert broken(name, width).splitlines() == (lines if name else [])


def test_the_table_breaks_a_name_between_its_words():
    table = shown([a_row("labs/ultimate_moe_inference:layer3_pipelining")], 70).split("\n\n")[1]
    assert [line.split("  ")[0] for line in table.splitlines()] == ["target", "labs/ultimate_moe_", "inference:layer3_", "pipelining"]


def test_of_several_figures_each_is_told_with_its_shape_or_side():
    def told(row):
        console = a_console(200)
        with Progress(console) as progress:
            progress.started(row.target, 1, 2)
            progress.finished(row)
        return console.file.getvalue().strip()

    both = {shape: a_timing() for shape in ("small", "large")}
    assert told(a_row(timings=both)) == "[1/2] PASSED ch07:transpose  @small 2.31x [2.28, 2.34], @large 2.31x [2.28, 2.34]"
    library = told(a_row(timings={"default": a_timing({"baseline": 80.0, "optimized": 40.0, "library": 20.0})}))
    assert re.fullmatch(r"\[1/2\] PASSED ch07:transpose  2\.00x \[.*\], library 4\.00x \[.*\]", library)
    assert told(a_row(timings={"cpu": a_timing()})) == "[1/2] PASSED ch07:transpose  2.31x [2.28, 2.34]"


def test_where_nothing_fits_the_name_is_broken_and_not_the_number():
    assert "2.31x [2.28, 2.34]  PASSED" in shown([a_row()], 34)


def test_reasons_are_whole_sentences_under_the_table_each_once():
    text = shown(ROWS, 80)

    assert text.count(REASON) == 1
    assert f"WRONG_RESULT ch07:broken: {REASON}\n" in text
    assert text.count("needs tensor memory") == 1
    assert "1 skipped: needs tensor memory; this is 9.0 (ch10:tmem_triple_overlap)\n" in text
    assert "y[3]" not in text.split("\n\n")[1]


def test_what_holds_is_counted_and_listed_where_that_is_asked_for():
    rows = [
        a_row(proofs=(a_proof(), a_proof("unchecked", "counter a < 1"), a_proof("unchecked", "counter b < 1"))),
        a_row("ch07:copy", proofs=(a_proof(),), verdicts={"default": a_verdict("SAME", "speedup +0.1 %")}),
    ]
    text = shown(rows, 140)
    assert "\nproofs: 2 proven, 2 unchecked (24 in optimized_x.so)\n" in text
    assert "UTCHMMA" not in text
    assert "SAME: speedup" not in text
    other = a_proof("unchecked", "launches < 2").model_copy(update={"detail": "seen on a GPU"})
    text = shown([rows[0].model_copy(update={"proofs": (*rows[0].proofs, other)})], 140)
    assert "\nproofs: 1 proven, 3 unchecked (24 in optimized_x.so; -v tells 1 other reason)\n" in text

    listed = shown(rows, 140, verbose=True)
    assert "ch07:copy: proven: UTCHMMA present in optimized: 24 in optimized_x.so\n" in listed
    assert "ch07:transpose: unchecked: counter a < 1, counter b < 1 in optimized: 24 in optimized_x.so\n" in listed
    assert "ch07:copy: SAME: speedup +0.1 %\n" in listed


def test_skips_of_one_reason_are_one_line():
    rows = [a_failure(Status.SKIPPED, target=f"ch10:pair{number}", reason="needs tcgen05; try ch10:one") for number in range(5)]
    text = shown([a_row(proofs=(a_proof(),)), *rows], 200)
    line = "5 skipped: needs tcgen05 (ch10:pair0, ch10:pair1, ch10:pair2 and 2 more; try ch10:one)"
    assert f"\nproofs: 1 proven; {line}\n" in text
    assert text.count("tcgen05") == 1
    assert "ch10:pair4  " in text  # a row a target
    listed = shown(rows, 200, verbose=True)
    assert "SKIPPED ch10:pair4: needs tcgen05; try ch10:one\n" in listed
    assert "5 skipped" not in listed


def test_a_run_of_skips_prints_a_row_a_target_and_little_else():
    console = a_console(140)
    rows = [a_failure(Status.SKIPPED, target=f"ch10:pair{number}", reason="needs tcgen05", proofs=(a_proof(),) * 9) for number in range(17)]
    with Progress(console) as progress:
        for number, row in enumerate([a_row(), *rows], start=1):
            progress.started(row.target, number, 18)
            progress.finished(row)
    print_results([a_row(), *rows], a_run(), console)
    assert len(console.file.getvalue().splitlines()) <= 18 + 9


def test_a_verdict_that_says_more_says_it_under_the_table():
    assert "ch07:transpose: INCONCLUSIVE: about 14 more units\n" in shown(ROWS, 80)


def test_what_several_rows_share_is_told_once():
    rows = [a_row(f"ch07:pair{number}", notes=("profile: ncu counted", *(("odd",) if number else ()))) for number in range(3)]
    text = shown(rows, 140)
    assert text.count("profile: ncu counted") == 1
    assert "all 3 targets: profile: ncu counted\n" in text
    assert "ch07:pair1, ch07:pair2: odd\n" in text


def test_why_a_side_is_faster_is_told_by_what_explains_most_of_it():
    row = profiled_row()
    text = shown([row, row.model_copy(update={"target": "ch07:plain", "sides": {}, "timings": {}})], 400)
    assert "ch07:transpose: optimized is faster: no unit was busy for so much less time, so its warps waited less\n" in text
    assert "ch07:plain: optimized" not in text


def test_the_last_line_counts():
    assert shown(ROWS, 80).endswith("\n5 targets: 3 PASSED, 1 SKIPPED, 1 WRONG_RESULT\n")
    assert shown([], 80, interrupted=True).endswith("\nno target was run, interrupted\n")
    folders = {row.target: "" for row in ROWS} | {"ch11:late": "", "ch11:later": ""}
    assert shown(ROWS, 80, interrupted=True, folders=folders).endswith(", interrupted: 2 not done (ch11:late, ch11:later)\n")


def test_a_pipe_gets_no_control_characters():
    console = a_console()
    with Progress(console) as progress:
        progress.started("ch07:transpose", 3, 12)
        progress.phase("ch07:transpose", "2 units, 2.3x")
        progress.finished(a_row())
        progress.started("ch07:broken", 4, 12)
        progress.finished(a_failure(reason=REASON))
        progress.note("ch07:copy is done already")
    print_results(ROWS, a_run(), console)
    text = console.file.getvalue()

    assert "\x1b" not in text
    assert text.splitlines()[:3] == [
        "[ 3/12] PASSED ch07:transpose  2.31x [2.28, 2.34]",
        "[ 4/12] WRONG_RESULT ch07:broken",
        "ch07:copy is done already",
    ]


def test_a_pipe_is_told_of_skips_beginnings_and_steps_where_that_is_asked_for():
    said = {}
    for verbose in (False, True):
        console = a_console()
        with Progress(console, verbose=verbose) as progress:
            progress.phase("", "built 1 of 2 sides")
            progress.started("ch07:broken", 1, 2)
            progress.phase("ch07:broken", "building")
            progress.finished(a_failure(Status.SKIPPED))
        assert not re.search(r"[1-9]\d* s: ", console.file.getvalue()), "since the run or its row began, not the machine"
        said[verbose] = re.sub(r"\d+\.\d s", "N s", console.file.getvalue())
    assert said == {
        False: "",
        True: "N s: built 1 of 2 sides\n[1/2] ch07:broken\n[1/2] ch07:broken N s: building\n[1/2] SKIPPED ch07:broken\n",
    }


def test_a_terminal_shows_the_running_estimate_on_one_line_that_goes_away():
    console = a_console(60, terminal=True)
    with Progress(console) as progress:
        progress.started("ch07:transpose", 1, 2)
        progress.phase("ch07:transpose", "4 units, 2.31x, half-width 0.4 %")
        live = console.file.getvalue()
        progress.phase("ch07:transpose", "long " * 40)
        too_long = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", console.file.getvalue().removeprefix(live)).strip()
        progress.finished(a_row())
    text = console.file.getvalue()

    assert "4 units, 2.31x, half-width 0.4 %" in live
    assert cell_len(too_long) == 60
    assert too_long.endswith("…")
    assert "PASSED" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back


def test_an_interrupt_gives_the_cursor_back():
    console = a_console(terminal=True)

    def interrupted():
        with Progress(console) as progress:
            progress.started("ch07:transpose", 1, 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    text = console.file.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_json_is_the_document_and_nothing_else(capsys):
    console = console_for(json_output=True)
    with Progress(console) as progress:
        progress.started("ch07:transpose", 1, 1)
        progress.finished(a_row())
    print_results([a_row()], a_run(), console)
    print_document(outcome_of(a_run(), [a_row()], Path("/runs/1"), ExitCode.GOOD))
    captured = capsys.readouterr()

    document = Outcome.model_validate(json.loads(captured.out))
    assert (document.run_id, document.rows, document.artifacts, document.exit_code) == (a_run().run_id, (a_row(),), "/runs/1", 0)
    assert captured.err == ""


def test_without_json_a_pipe_gets_the_wide_table(capsys):
    console = console_for(json_output=False)
    print_results([a_row()], a_run(), console)

    assert "cuda, device clock, cold, burst" in capsys.readouterr().out
