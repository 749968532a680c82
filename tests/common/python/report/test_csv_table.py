"""results.csv: a line a target, shape and side, with what metrics.json has, and no cell that a spreadsheet would run."""

import csv
import io

from common.python.report.csv_table import COLUMNS, csv_text
from common.python.results import Origin
from tests.support.factories import a_failure, a_row, a_timing, a_verdict, an_interval


def read(rows):
    return list(csv.DictReader(io.StringIO(csv_text(rows))))


def test_a_line_a_side_with_its_time_and_speedup():
    row = a_row(verdicts={"default": a_verdict("SAME")}, origin=Origin(gpus=("NVIDIA H200 (GPU-1)",), commit="0123"))
    baseline, optimized = read([row])

    assert (baseline["target"], baseline["shape"], baseline["side"], baseline["speedup"]) == ("ch07:transpose", "default", "baseline", "")
    assert (float(optimized["time_ns"]), float(optimized["time_low_ns"])) == (36_700.0, 36_333.0)
    assert float(optimized["speedup_low"]) < float(optimized["speedup"]) < float(optimized["speedup_high"])
    assert (optimized["verdict"], optimized["gpus"], optimized["commit"], optimized["process_pairs"]) == (
        "SAME",
        "NVIDIA H200 (GPU-1)",
        "0123",
        "6",
    )


def test_each_shape_and_each_further_side_has_lines():
    timings = {name: a_timing({"baseline": 80.0, "library": 60.0, "optimized": 40.0}) for name in ("default", "large")}

    assert [(line["shape"], line["side"]) for line in read([a_row(timings=timings)])] == [
        (shape, side) for shape in ("default", "large") for side in ("baseline", "library", "optimized")
    ]


def test_another_goal_than_time_has_its_figures_and_unit():
    figures = {"baseline": an_interval(400.0, 4.0), "optimized": an_interval(100.0, 1.0)}
    timing = a_timing(goal="peak_bytes", figures=figures, gains={"optimized": an_interval(4.0, 0.1)}, unit="bytes")
    optimized = read([a_row(timings={"default": timing})])[1]

    assert (optimized["goal"], optimized["figure"], optimized["unit"], optimized["gain"]) == ("peak_bytes", "100.0", "bytes", "4.0")


def test_a_row_without_a_time_is_one_line_with_its_reason():
    (line,) = read([a_failure(reason='y is "1",\nexpected 2')])

    assert (line["status"], line["reason"], line["time_ns"]) == ("WRONG_RESULT", 'y is "1", expected 2', "")


def test_no_cell_is_a_formula():
    (line,) = read([a_failure(reason="=HYPERLINK(1)")])

    assert line["reason"] == "'=HYPERLINK(1)"


def test_no_row_is_a_header_alone():
    assert csv_text([]) == ",".join(COLUMNS) + "\n"
