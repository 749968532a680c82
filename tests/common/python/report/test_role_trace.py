"""A traced demo's file becomes shares with intervals, and the report of a run shows them with their side, and from when they are."""

import json

import pytest

from common.python.errors import BenchmarkError, Status
from common.python.gate.statistics import geometric_interval
from common.python.report.html import html
from common.python.report.role_trace import ROLES, SETS, lines, read_role_trace, sentences
from common.python.report.tables import markdown, sections
from common.python.settings import Settings
from common.python.wording import speedup_text
from tests.support.factories import a_failure, a_row, a_run, a_side

TITLE = "Roles that were busy together, traced"


def a_document(**changes):
    """Shares that differ by 2 % of the time between two launches."""
    shares = [
        {"load multiply drain": 0.4 + by, "load multiply": 0.2 - by, "load multiply wait": 0.1, "load wait": 0.1, "drain": 0.2}
        for by in (0, 0.02)
    ]
    launches = [
        {
            "traced_us": 104.0 + 2 * i,
            "untraced_us": 100.0,
            "loads_in_flight": 3.0,
            "step_ns": 430.0,
            "shares": dict.fromkeys(SETS, 0.0) | each,
        }
        for i, each in enumerate(shares)
    ]
    fields = {
        "schema_version": 1,
        "gpu": "NVIDIA H200",
        "driver": "580.1",
        "date": "2026-01-02",
        "side": "optimized_transpose.cu",
        "shape": {"m": 64, "n": 32, "k": 16},
        "blocks": 132,
        "stages": 4,
        "clock_step_ns": 32,
        "launches": launches,
    }
    return fields | changes


@pytest.fixture
def kept(tmp_path):
    """Keeps a document, by default in the folder of ch07:transpose below the root that it is given."""

    def keep(name="ch07/triple_overlap_trace_h200.json", **changes):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(a_document(**changes)))
        return path

    return keep


def test_shares_are_means_of_the_launches_with_their_interval(kept):
    trace = read_role_trace(kept())
    found = trace.share(lambda busy: busy == set(ROLES))
    assert found.estimate == pytest.approx(0.41)
    assert found.high - found.estimate == pytest.approx(12.7062 * 0.01, rel=1e-4), "Student's t, one degree of freedom, 0.02 / 2"
    told = {busy: (whole.split(" ")[0], waiting.split(" ")[0]) for busy, whole, waiting in lines(trace)}
    assert told == {
        "load, multiply, drain": ("41.0", "0.0"),
        "load, multiply": ("29.0", "10.0"),
        "load, drain": ("0.0", "0.0"),
        "multiply, drain": ("0.0", "0.0"),
        "load": ("10.0", "10.0"),
        "multiply": ("0.0", "0.0"),
        "drain": ("20.0", "0.0"),
        "nobody": ("0.0", "0.0"),
        "load, in all": ("80.0", "20.0"),
        "multiply, in all": ("70.0", "10.0"),
        "drain, in all": ("61.0", "0.0"),
    }


def test_no_interval_of_a_share_goes_below_nothing(kept):
    shares = [dict.fromkeys(SETS, 0.0) | {"load": 1.0 - idle, "nobody": idle} for idle in (0.0, 0.02)]
    launches = [a_document()["launches"][0] | {"shares": each} for each in shares]
    told = list(lines(read_role_trace(kept(launches=launches))))
    assert ("nobody", "1.0 % [0.0, 13.7]", "0.0 % [0.0, 0.0]") in told


def test_what_stamps_cost_and_how_fine_the_clock_is_stands_beside(kept):
    text = " ".join(sentences(read_role_trace(kept())))
    assert f"without: {speedup_text(geometric_interval([1.04, 1.06]))}." in text
    assert "on average 3.00 [3.00, 3.00] of 4 stages" in text
    assert "A step takes 430 ns [430, 430]; the clock of the stamps moves on by 32 ns." in text


def test_a_file_that_is_no_such_document_is_an_error_that_names_it(kept, tmp_path):
    launch = a_document()["launches"][0]
    for broken in ({"gpu": None}, {"launches": [launch]}, {"launches": [{**launch, "shares": {"load": 1.0}}] * 2}, {"extra": 1}):
        path = kept(**broken)
        with pytest.raises(BenchmarkError, match=rf"{path}: found .*; expected what the demo beside it writes"):
            read_role_trace(path)
    with pytest.raises(BenchmarkError, match="No such file"):
        read_role_trace(tmp_path / "none.json")


def section_of(rows, root):
    return [section.rows for section in sections(rows, root) if section.title == TITLE]


def test_the_report_shows_a_trace_with_the_side_that_was_traced_and_when_and_where(kept, tmp_path):
    kept()
    other = a_row(
        "ch07:transpose_wide", sides={side: a_side(side, file=f"ch07/{side}_transpose_wide.cu") for side in ("baseline", "optimized")}
    )
    (entries,) = section_of([a_row(), other], tmp_path)
    assert {entry[0] for entry in entries} == {"ch07:transpose"}
    where = "optimized_transpose.cu at m = 64, n = 32, k = 16 on an NVIDIA H200, driver 580.1, 2026-01-02: means of 2 launches."
    assert entries[0][4].startswith(f"Not in this run: {where}")
    assert ("ch07:transpose", "load, multiply", "29.0 % [16.3, 41.7]", "10.0 % [10.0, 10.0]", "2026-01-02, NVIDIA H200") in entries

    run = a_run(Settings(root=tmp_path))
    for text in (markdown(run, [a_row()]), html(run, [a_row()])):
        assert TITLE in text
        assert "2026-01-02, NVIDIA H200" in text
        assert "29.0 % [16.3, 41.7]" in text


def test_there_is_none_without_a_file_for_another_root_and_for_a_row_that_did_not_pass(kept, tmp_path):
    assert not section_of([a_row()], tmp_path)
    kept()
    assert not section_of([a_row()], tmp_path / "ch07")
    failed = a_failure(Status.WRONG_RESULT, target="ch07:transpose", sides={"optimized": a_side()})
    assert not section_of([failed], tmp_path)
    assert TITLE not in markdown(a_run(Settings(root=tmp_path / "ch07")), [a_row()])


def test_a_file_that_cannot_be_read_is_said_in_the_report_and_stops_nothing(kept, tmp_path):
    path = kept(gpu=3)
    ((entry,),) = section_of([a_row()], tmp_path)
    assert entry[4].startswith(f"{path}: found ")
