"""The table of served requests: a line a load and side."""

from common.python.report.served import COLUMNS, ServedLine, served_lines
from common.python.report.tables import sections
from common.python.results import Interval, ServingFigures
from tests.support.factories import a_row, a_timing

FIGURES = {
    "ttft_ms.p50": 12.0,
    "ttft_ms.p95": 34.0,
    "tpot_ms.p50": 1.5,
    "tpot_ms.p95": 2.5,
    "itl_ms.p50": 1.25,
    "itl_ms.p95": 2.25,
    "e2e_ms.p50": 120.0,
    "e2e_ms.p95": 240.0,
    "output_tokens_per_s": 640.0,
    "requests_per_s": 8.0,
    "goodput": 0.975,
    "queue_depth.mean": 0.5,
    "queue_depth.max": 4.0,
}


def a_served_timing(**load):
    figures = {name: Interval(estimate=value, low=value, high=value) for name, value in FIGURES.items()}
    serving = ServingFigures(slo_ttft_ms=100.0, slo_tpot_ms=5.0, figures={"baseline": figures, "optimized": figures}, **load)
    return a_timing().model_copy(update={"serving": serving})


def test_each_load_has_a_line_a_side():
    loads = {
        "default": {},
        "per_s=40": {"offered_per_s": 40.0},
        "arrival_poisson=0.8": {"offered_per_s": 8.0, "saturation_per_s": 10.0},
    }
    row = a_row(timings={name: a_served_timing(**load) for name, load in loads.items()})
    lines = served_lines([row])
    assert [line.load for line in lines] == ["all at once"] * 2 + ["40.0/s"] * 2 + ["0.8 of 10.0/s"] * 2
    assert [line.side for line in lines] == ["baseline", "optimized"] * 3
    assert lines[4].target.endswith("@arrival_poisson=0.8")
    found = lines[4].ttft, lines[4].tpot, lines[4].tokens, lines[4].requests, lines[4].goodput, lines[4].queue
    assert found == ("12.0 / 34.0", "1.50 / 2.50", "640", "8.00", "97.5 %", "0.500 / 4.00")
    (table,) = (section for section in sections([row]) if section.title == "Served requests")
    assert not table.folded
    assert len(table.rows) == len(lines)


def test_rows_that_serve_nothing_have_no_such_table():
    assert served_lines([a_row()]) == []
    assert "Served requests" not in {section.title for section in sections([a_row()])}


def test_every_field_of_a_line_has_a_title():
    assert tuple(COLUMNS) == tuple(ServedLine.__dataclass_fields__)
