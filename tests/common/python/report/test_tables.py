"""Reports say what was measured and why the rest was not, to people and to CI."""

import re
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from common.python.errors import Status
from common.python.report.html import html
from common.python.report.rows import remarks
from common.python.report.tables import junit, markdown, markdown_cell, sections, title
from common.python.results import Energy, Interval, KernelUse, PredictedTerm, ReportedMetric, Share, Spread, TelemetrySummary, VerdictKind
from common.python.settings import Settings
from tests.support.factories import a_change, a_failure, a_proof, a_row, a_run, a_side, a_timing, a_verdict, an_interval
from tests.support.html_page import Page

A_TIME = re.compile(r"\d (ns|µs|ms|s)\b|\dx\b")


def tables_of(text):
    """Every table of a Markdown text by the title above it: lists of cells, headings first."""
    tables, title = {}, ""
    for line in text.splitlines():
        if heading := re.match(r"## (.*)|<details><summary>(.*)</summary>", line):
            title = heading[1] or heading[2]
        elif line.startswith("|") and not set(line) <= set("|-: "):
            tables.setdefault(title, []).append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return tables


def test_the_machine_and_the_settings_are_two_lines_under_the_heading():
    lines = markdown(a_run(), [a_row()]).splitlines()

    assert lines[0] == "# ch07:transpose: benchmark 20260102_030405"
    assert lines[2].startswith("- NVIDIA H200 (driver 580.1)")
    assert lines[3] == "- seed 7; default settings"


def test_a_row_that_passed_shows_times_speedup_verdict_and_proofs():
    row = a_row(verdicts={"default": a_verdict("SAME")}, proofs=(a_proof(), a_proof("unchecked")))

    assert tables_of(markdown(a_run(), [row]))["Results"] == [
        ["target", "baseline", "optimized", "speedup [95 %]", "share of ceiling", "status", "verdict", "proofs"],
        ["ch07:transpose", "84.7 µs", "36.7 µs", "2.31x [2.28, 2.34]", "", "PASSED", "SAME", "1 of 2"],
    ]


def test_a_ladder_shows_every_rung_at_every_shape():
    row = a_row(timings={"small": a_timing({"baseline": 8e6, "smem": 4e6, "library": 2e6}), "large": a_timing()})

    assert [entry[:4] for entry in tables_of(markdown(a_run(), [row]))["Results"][1:]] == [
        ["ch07:transpose @small", "8.00 ms", "", ""],
        ["└ smem", "", "4.00 ms", "2.00x [1.97, 2.03]"],
        ["└ library", "", "2.00 ms", "4.00x [3.97, 4.03]"],
        ["ch07:transpose @large", "84.7 µs", "36.7 µs", "2.31x [2.28, 2.34]"],
    ]


def test_every_rung_stands_beside_the_one_before_it():
    rungs = {"smem": an_interval(2.0, 0.03), "optimized": an_interval(1.5, 0.02)}
    row = a_row(timings={"default": a_timing({"baseline": 8e6, "smem": 4e6, "optimized": 2.7e6, "library": 2e6}, rungs=rungs)})

    assert tables_of(markdown(a_run(), [row]))["Ladders"][1:] == [
        ["ch07:transpose", "smem", "baseline", "2.00x [1.97, 2.03]", "4.00 ms [3.96, 4.04]", ""],
        ["ch07:transpose", "optimized", "smem", "1.50x [1.48, 1.52]", "2.70 ms [2.67, 2.73]", ""],
    ]
    assert "Ladders" not in tables_of(markdown(a_run(), [a_row()]))
    page = Page(html(a_run(), [row]))
    assert any(
        text.startswith("8.00 ms → 4.00 ms: faster") and text.endswith("; 2.00x [1.97, 2.03] over baseline") for text in page.texts("span")
    )
    assert any("Ladders" in text and "1.50x [1.48, 1.52]" in text for text in page.texts("section"))


def test_a_half_has_a_time_and_no_speedup():
    row = a_row("ch07:transpose_optimized", timings={"default": a_timing({"optimized": 36_700.0})})

    assert tables_of(markdown(a_run(), [row]))["Results"][1][:4] == ["ch07:transpose_optimized", "", "36.7 µs", ""]


def test_what_did_not_pass_stands_with_its_reason_failures_first():
    rows = [a_failure(Status.SKIPPED, target="ch10:tmem", reason="no CUDA device"), a_row(), a_failure(reason="y[3] is 1;\nexpected 2")]
    text = markdown(a_run(), rows)

    assert tables_of(text)["Not passed"][1:] == [
        ["ch07:broken", "WRONG_RESULT", "y[3] is 1; expected 2"],
        ["ch10:tmem", "SKIPPED", "no CUDA device"],
    ]
    assert "3 targets: 1 PASSED, 1 SKIPPED, 1 WRONG_RESULT." in text


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_no_report_shows_a_time_for_a_row_that_did_not_pass(status):
    row = a_failure(status, seconds=7.25, proofs=(a_proof("unchecked"),))

    text = markdown(a_run(), [row])
    assert not A_TIME.search(text)
    assert A_TIME.search(markdown(a_run(), [a_row()]))
    assert "time=" not in junit(a_run(), [row])
    assert tables_of(text).keys() == {"Results", "Not passed", "Proofs"}


def test_how_each_number_came_about_is_told():
    row = a_row(timings={"default": a_timing(interleaved=False)}, notes=("power cap held",))

    (entry,) = tables_of(markdown(a_run(), [row]))["How certain each number is"][1:]

    assert entry == [
        *("ch07:transpose", "cuda, device clock, cold, burst", "no", "yes", "6", "1.30 %", "precise"),
        "the sides took turns, not interleaved; power cap held",
    ]


def test_a_clock_that_counts_the_launch_is_not_blamed_for_it():
    row = a_row(timings={"default": a_timing(clock="launch", launch_latency_hidden=False)})

    (entry,) = tables_of(markdown(a_run(), [row]))["How certain each number is"][1:]

    assert entry[1:4] == ["cuda, launch clock, cold, burst", "yes", ""]


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([], "Benchmark 1"),
        (["ch07:a"], "ch07:a: benchmark 1"),
        (["ch07:a", "ch08:b"], "ch07:a, ch08:b: benchmark 1"),
        (["ch07:a", "ch07:b", "ch07:c"], "3 targets of ch07: benchmark 1"),
        ([f"ch0{number}:a" for number in range(1, 6)], "5 targets of ch01, ch02, ch03 and 2 more: benchmark 1"),
    ],
)
def test_a_report_is_titled_by_its_targets(targets, said):
    assert title(a_run(run_id="1"), [a_row(target) for target in targets]) == said


def test_error_set_up_and_memory_stand_beside_the_time():
    entries = tables_of(markdown(a_run(), [a_row()]))["Each side"][1:]

    assert entries[1] == [
        *("ch07:transpose", "optimized", "36.7 µs [36.3, 37.1]", "", "", "1.5e-06 abs, 2.5e-07 rel"),
        *("build 1.00 s, load 10.0 ms, prepare 500 ms, first call 2.00 ms", "5,209", "3.00 MiB", ""),
    ]


def test_a_share_of_the_ceiling_has_the_interval_of_its_time():
    time = Interval(estimate=100.0, low=80.0, high=125.0)
    shares = {"optimized": Share(key="bf16", share=0.8, ceiling_ns=80.0, floor_ns=80.0, at_held_clock=0.875)}
    row = a_row(timings={"default": a_timing(time_ns={"baseline": time, "optimized": time}, speedups={}, shares=shares)})

    baseline, optimized = tables_of(markdown(a_run(), [row]))["Each side"][1:]

    assert optimized[3:5] == ["80.0 % [64.0, 100.0] of bf16", "87.5 %"]
    assert baseline[3:5] == ["", ""]


def test_what_each_kernel_takes_is_shown_and_what_no_step_showed_is_left_open():
    kernels = [
        KernelUse(
            name="gemm<128>", architecture="90a", registers=168, spill_bytes=0, shared_bytes=196_608, launches=1, occupancy_percent=12.5
        ),
        KernelUse(name="drain", architecture="90a", registers=32, spill_bytes=16, shared_bytes=0),
    ]
    row = a_row(sides={"baseline": a_side("baseline"), "optimized": a_side(kernels=kernels)})

    assert tables_of(markdown(a_run(), [row]))["Kernels"][1:] == [
        ["ch07:transpose", "optimized", r"gemm\<128>", "sm_90a", "168", "0 B", "192 KiB", "1", "12 %"],
        ["ch07:transpose", "optimized", "drain", "sm_90a", "32", "16.0 B", "0 B", "", ""],
    ]


def test_what_the_device_did_is_told_where_it_was_watched():
    power = Spread(minimum=120.0, median=420.4, mean=400.0, maximum=690.0)
    seen = TelemetrySummary(samples=9, power_w=power, reasons={"power cap": 0.25}, energy=Energy(joules=812.0, seconds=2.1))
    rows = [a_row(), a_row("ch07:watched", timings={"default": a_timing(telemetry=seen)})]

    assert tables_of(markdown(a_run(), rows))["What the device did meanwhile"][1:] == [
        ["ch07:watched", "", "", "420 (120 to 690)", "", "power cap 25 %", "0 %", "812 J in 2.1 s"]
    ]


def test_a_figure_of_the_workload_is_labelled_self_reported():
    row = a_row(metrics={"optimized": {"tokens": ReportedMetric(value=1234.5, unit="1/s", better="higher")}})

    assert tables_of(markdown(a_run(), [row]))["Further figures"][1:] == [
        ["ch07:transpose", "optimized", "tokens", "1234 1/s", "self-reported"]
    ]


def test_the_proofs_of_a_skipped_row_are_shown():
    row = a_failure(Status.SKIPPED, proofs=(a_proof(),))

    assert tables_of(markdown(a_run(), [row]))["Proofs"][1:] == [
        ["ch07:broken", "optimized", "UTCHMMA present", "proven", r"24 in optimized_x.so"]
    ]


def test_markdown_syntax_in_a_reason_stays_text():
    reason = "`a|b` <T> *x* __init__ [y](http://z) & partial[rows * 4]\n| c"
    text = markdown(a_run(), [a_failure(reason=reason)])
    cells = [token.children for token in MarkdownIt("commonmark").enable("table").parse(text) if token.type == "inline"]

    assert [(child.type, child.content) for child in cells[-1]] == [("text", " ".join(reason.split()))]


def test_a_tilde_is_escaped_where_another_could_strike_out_what_is_between():
    assert markdown_cell("against HEAD~1") == "against HEAD~1"
    assert markdown_cell("HEAD~1 or ~/pairs") == r"HEAD\~1 or \~/pairs"


def test_a_run_against_another_revision_names_it_where_the_sides_are_named():
    text = markdown(a_run(Settings(against="HEAD~1"), against="a" * 40), [a_row()])

    assert "- Baseline: each pair's own optimized side at HEAD~1 (commit aaaaaaaaaa)\n" in text
    assert tables_of(text)["Results"][0][1:4] == ["at HEAD~1", "now", "speedup [95 %]"]
    assert tables_of(markdown(a_run(), [a_row()]))["Results"][0][1:3] == ["baseline", "optimized"]
    assert tables_of(markdown(a_run(Settings(against="b" * 40), against="b" * 40), [a_row()]))["Results"][0][1] == "at bbbbbbbbbb"


def test_an_interrupted_run_says_so():
    assert "1 PASSED, interrupted: further targets were not run." in markdown(a_run(interrupted=True), [a_row()])


def test_a_report_of_nothing_is_still_a_report():
    text = markdown(a_run(), [])

    assert "no target was run." in text
    assert tables_of(text) == {}


# --- JUnit


def cases_of(rows):
    suite = ET.fromstring(junit(a_run(), rows)).find("testsuite")
    return suite, suite.findall("testcase")


def test_junit_has_a_case_a_row_and_counts_them():
    suite, (passed, skipped, failed) = cases_of([a_row(), a_failure(Status.SKIPPED, target="labs/moe:route"), a_failure(Status.TIMEOUT)])

    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {"tests": "3", "failures": "1", "skipped": "1"}
    assert (passed.get("classname"), passed.get("name"), passed.get("time")) == ("ch07", "transpose", "7.250")
    assert [child.tag for child in passed] == ["properties"]
    assert (skipped.get("classname"), skipped.get("name"), skipped[0].tag) == ("labs/moe", "route", "skipped")
    assert (failed[0].tag, failed[0].get("type"), failed[0].get("message")) == ("failure", "TIMEOUT", "y[3] is 1; expected 2")


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PASSED, Status.SKIPPED}))
def test_every_failing_status_fails_in_junit(status):
    _, (case,) = cases_of([a_failure(status)])

    assert case.find("failure").get("type") == status


def test_a_regression_fails_in_junit_and_other_verdicts_do_not():
    verdicts = [a_verdict(kind, "speedup -3.0 %") for kind in VerdictKind]
    _, cases = cases_of([a_row(f"ch07:pair{i}", verdicts={"default": verdict}) for i, verdict in enumerate(verdicts)])
    failed = {kind: case.find("failure") for kind, case in zip(VerdictKind, cases, strict=True)}

    assert [kind for kind, failure in failed.items() if failure is not None] == [VerdictKind.REGRESSED]
    assert failed[VerdictKind.REGRESSED].get("message") == "REGRESSED: speedup -3.0 %"


def test_a_regression_that_was_accepted_is_no_failure():
    _, (case,) = cases_of([a_row(verdicts={"default": a_verdict("REGRESSED", accepted=True)})])

    assert case.find("failure") is None


def test_a_gated_row_shows_each_change_that_its_verdict_rests_on():
    change = a_change("REGRESSED", -3.0)
    row = a_row(verdicts={"default": a_verdict("REGRESSED", "speedup down", changes={"speedup": change})})

    assert tables_of(markdown(a_run(), [row]))["Against what was expected"][1:] == [
        ["ch07:transpose", "", "", "", "REGRESSED", "speedup down"],
        ["ch07:transpose", "speedup", "-3.0 % [-3.2, -2.8]", "0.5 %", "REGRESSED", ""],
    ]


def properties_of(element):
    return {each.get("name"): each.get("value") for each in element.iterfind("properties/property")}


def test_junit_has_times_and_speedups_of_what_passed_as_properties():
    _, (passed, failed) = cases_of([a_row(timings={"default": a_timing({"baseline": 8e6, "optimized": 2e6})}), a_failure()])

    figures = properties_of(passed)
    assert {name: figures[name] for name in ("baseline seconds", "optimized seconds", "optimized speedup")} == {
        "baseline seconds": "0.008",
        "optimized seconds": "0.002",
        "optimized speedup": "4",
    }
    assert float(figures["optimized speedup low"]) < 4 < float(figures["optimized speedup high"])
    assert properties_of(failed) == {}


def suite_of(rows, **changes):
    return ET.fromstring(junit(a_run(**changes), rows)).find("testsuite")


def test_what_an_interrupted_run_did_not_reach_is_an_error_in_junit():
    folders = {"ch07:transpose": "a", "ch07:late": "b"}
    suite = suite_of([a_row()], interrupted=True, exit_code=130, folders=folders)
    _, late = suite.findall("testcase")

    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {"tests": "2", "failures": "0", "errors": "1"}
    assert (late.get("name"), late.find("error").get("type")) == ("late", "INTERRUPTED")
    through = suite_of([a_row()], exit_code=0, folders=folders)  # a resumed run that was asked for less
    assert (through.get("tests"), through.get("errors")) == ("1", "0")


@pytest.mark.parametrize(("code", "name"), [(3, "INCONCLUSIVE"), (5, "NOTHING_MEASURED"), (6, "UNFIT"), (143, "INTERRUPTED")])
def test_an_exit_code_that_no_row_shows_is_an_error_in_junit(code, name):
    suite = suite_of([a_failure(Status.SKIPPED), a_row(verdicts={"default": a_verdict("INCONCLUSIVE")})], exit_code=code)
    case = suite.findall("testcase")[-1]

    assert properties_of(suite) == {"exit_code": str(code)}
    assert (case.get("classname"), case.get("name"), case.find("error").get("type")) == ("benchmark_cli", "exit_code", name)
    assert suite.get("errors") == "1"


@pytest.mark.parametrize(("rows", "code"), [([a_row()], 0), ([a_failure()], 4)])
def test_an_exit_code_that_a_row_shows_has_no_case_of_its_own(rows, code):
    suite = suite_of(rows, exit_code=code)

    assert suite.get("tests") == "1"
    assert suite.get("errors") == "0"


def test_junit_stays_xml_whatever_a_compiler_says():
    _, (case,) = cases_of([a_failure(Status.BUILD_FAILED, reason='\x1b[31merror\x1b[0m: "a" < b & \x00')])

    assert (
        case.find("failure").get("message")
        == '\N{REPLACEMENT CHARACTER}[31merror\N{REPLACEMENT CHARACTER}[0m: "a" < b & \N{REPLACEMENT CHARACTER}'
    )


def test_every_predicted_term_stands_beside_its_measurement_and_says_which_missed():
    def term(subject, predicted, measured, **changes):
        ratio = measured / predicted
        return PredictedTerm(subject=subject, shape="default", predicted=predicted, measured=measured, unit="s", ratio=ratio, **changes)

    terms = (term("baseline", 1e-3, 2e-3, missed=True, expression="8 * n / dram_copy"), term("optimized", 0.5e-3, 1e-3, missed=True))
    ratio = PredictedTerm(subject="speedup", shape="default", predicted=2.0, measured=2.0, unit="x", ratio=1.0, missed=False)
    row = a_row(predictions={"default": (*terms, ratio)})
    section = next(found for found in sections([row]) if found.title == "Predicted and measured")
    assert [entry[1:] for entry in section.rows] == [
        ("baseline", "8 * n / dram_copy", "1 ms", "2 ms", "2.00", "missed"),
        ("optimized", "", "500 µs", "1 ms", "2.00", "missed"),
        ("speedup", "", "2x", "2x", "1.00", "hit"),  # though both of its terms missed
    ]
    told = remarks(row, everything=True)
    assert any("baseline: predicted 1 ms, measured 2 ms: missed" in line for line in told)
    assert not any("predicted" in line for line in remarks(row))
