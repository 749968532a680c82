"""Simulated fleets in a README: a line a pair and number of engines, beside the row of as many, and a record that is none is named."""

import json

import pytest

from common.python.errors import BenchmarkError
from common.python.gate.expectations import keep_expectations
from common.python.project import PROJECT_ROOT
from tests.support.factories import an_expectation, an_interval
from tools.checks.fleets import fleets


def a_row(gain, gpus, engines=2):
    return {"pair": "routing", "engines": engines, "gpus": gpus, "gain": gain} | {
        side: {"ttft_ms.p95": value} for side, value in (("baseline", 100.0 * gain), ("optimized", 100.0))
    }


@pytest.fixture
def script(tmp_path):
    return tmp_path / "fleet_simulation.py"


def keep(script, *rows, **changes):
    known = {"times": "assumed", "source": "arithmetic, not measured: of a test", "traces": 3, "shapes": {"routing": {"slots": 2}}}
    script.with_name("fleet_simulated_assumed.json").write_text(json.dumps(known | {"rows": rows} | changes))


def test_both_kinds_of_fleet_stand_in_a_line(script):
    keep(script, a_row(5.0, 2), a_row(2.0, 1), a_row(3.0, 8, engines=8))
    text = fleets(script)
    assert "| [routing](#routing) | 2 | 5.00x: 500 to 100 ms | 2.00x: 200 to 100 ms |  |" in text
    assert "| [routing](#routing) | 8 | 3.00x: 300 to 100 ms |  |  |" in text
    assert text.endswith("Simulated with service times `assumed`, arithmetic, not measured; 3 traces a row.")


@pytest.mark.parametrize("goal", ["ttft_ms.p95", "e2e_ms.p95"])
def test_a_row_of_any_goal_stands_beside_the_fleet_of_as_many_engines_by_its_ttft(script, goal):
    figures = {side: {"ttft_ms.p95": an_interval(value, 1.0)} for side, value in (("baseline", 150.0), ("optimized", 100.0))}
    row = an_expectation(1.1, goal=goal, shape={"engines": 2}, figures=figures)
    keep_expectations(script.with_name("expectations_h200.json"), "routing", {"default": row})
    keep(script, a_row(2.0, 1), a_row(3.0, 8, engines=8))
    text = fleets(script)
    assert "| [routing](#routing) | 2 |  | 2.00x: 200 to 100 ms | H200 1.50x: 150 to 100 ms |" in text
    assert "| [routing](#routing) | 8 | 3.00x: 300 to 100 ms |  |  |" in text


def test_without_a_record_nothing_is_claimed(script):
    assert fleets(script) == "Not measured yet."


def test_what_is_no_record_is_named(script):
    keep(script, traces=None)
    with pytest.raises(BenchmarkError, match=r"fleet_simulated_assumed.json: traces: .*; expected what fleet_simulation.py --shapes"):
        fleets(script)


def test_rows_of_as_many_engines_stand_beside():
    lines = [line.split("|") for line in fleets(PROJECT_ROOT / "ch17/fleet_simulation.py").splitlines() if line.startswith("| [")]
    beside = {(cells[1].strip().partition("]")[0].lstrip("["), int(cells[2])) for cells in lines if cells[5].strip()}
    assert beside <= {("routing_static", 2), ("dynamic_routing", 4)}
